/* SPDX-License-Identifier: MIT */
/* The stack after exec holds argc, argv, 0, environment, 0, pairs of words (System V AMD64 ABI, 3.4.1). */
#include "injector/tracee/proc/auxv.h"

#include "injector/tracee/proc/proc.h"

#include <elf.h>
#include <string.h>
#include <sys/ptrace.h>

#define LOADER_SIZE (UINT64_C(1) << 20) /* at least its text, glibc's and musl's */
#define STACK_WORDS 8192u               /* of the loader's frames; glibc's need some hundred */
#define MOST_WORDS  (UINT64_C(1) << 21) /* the kernel's limit on arguments is far lower */
#define PAGE        UINT64_C(4096)

struct words { /* of the stack, read page by page */
	const struct dp_process *p;
	uint64_t at, n; /* of what was read last */
	uint64_t value[PAGE / sizeof(uint64_t)];
};

static bool word(struct words *w, uint64_t at, uint64_t *ret)
{
	if (at - w->at >= w->n * sizeof(uint64_t)) {
		w->at = at; /* a multiple of eight: the kernel aligns the stack */
		w->n = dp_mem_read(w->p, dp_addr_of(at), w->value, PAGE - at % PAGE) / sizeof(uint64_t);
	}
	if (!w->n)
		return false;
	*ret = w->value[(at - w->at) / sizeof(uint64_t)];
	return true;
}

/* Moves *at past the next zero word. */
static bool skip_list(struct words *w, uint64_t *at)
{
	uint64_t value, limit = *at + MOST_WORDS * sizeof(value);
	while (*at < limit && word(w, *at, &value)) {
		*at += sizeof(value);
		if (!value)
			return true;
	}
	return false;
}

static struct dp_error *unreadable(const struct dp_process *p)
{
	return dp_error(DP_TAG_INTERNAL, "the auxiliary vector of process %d (%s) is not where the ABI puts it", p->pid, p->comm);
}

/* `stack`: where exec put argc. */
static struct dp_error *find(const struct dp_process *p, uint64_t stack, struct dp_auxv_entry *ret, bool *is_static)
{
	struct words words = {.p = p};
	uint64_t at = stack + sizeof(uint64_t), pair[2], base = 0;
	struct dp_auxv_entry entry = {.value = 0};
	if (!skip_list(&words, &at) || !skip_list(&words, &at))
		return unreadable(p);
	for (;; at += sizeof(pair)) {
		if (!word(&words, at, &pair[0]) || !word(&words, at + sizeof(uint64_t), &pair[1]))
			return unreadable(p);
		if (pair[0] == AT_NULL)
			break;
		if (pair[0] == AT_BASE)
			base = pair[1];
		if (pair[0] == AT_ENTRY)
			entry = (struct dp_auxv_entry){dp_addr_of(at + sizeof(uint64_t)), pair[1]};
	}
	*is_static = !base;
	if (base && !entry.value)
		return unreadable(p);
	*ret = entry;
	return NULL;
}

struct dp_error *dp_entry_find(const struct dp_process *p, struct dp_auxv_entry *ret, bool *is_static)
{
	struct user_regs_struct r;
	if (ptrace(PTRACE_GETREGS, p->pid, NULL, &r) != 0)
		return dp_error(DP_TAG_GONE, "process %d (%s) ended", p->pid, p->comm);
	return find(p, r.rsp, ret, is_static);
}

/* ---- a loader that runs ---------------------------------------------------------------------------------------------------- */

/* glibc's _start of ld.so: mov %rsp,%rdi; call _dl_start. That call lasts until the program begins. */
static const uint8_t begins[] = {0x48, 0x89, 0xe7, 0xe8};
#define RETURNS (sizeof(begins) + 4) /* to here */

static uint64_t loader_of(pid_t pid)
{
	struct dp_buf b;
	uint64_t base = 0;
	dp_buf_init(&b);
	if (dp_proc_slurp(&b, "/proc/%d/auxv", pid))
		for (const uint64_t *w = (const uint64_t *)(const void *)b.data, *end = w + b.len / sizeof(*w); w + 1 < end;
		     w += 2)
			base = *w == AT_BASE ? w[1] : base;
	dp_buf_fini(&b);
	return base;
}

bool dp_loader_has(pid_t pid, uint64_t pc)
{
	const uint64_t base = loader_of(pid);
	return base && pc >= base && pc - base < LOADER_SIZE;
}

static bool word_at(const struct dp_process *p, uint64_t at, uint64_t *ret)
{
	return dp_mem_read(p, dp_addr_of(at), ret, sizeof(*ret)) == sizeof(*ret);
}

bool dp_loader_is_done(const struct dp_process *p)
{
	struct dp_task_stat stat;
	uint64_t back;
	return dp_proc_stat(p->pid, 0, &stat) && stat.start_stack && word_at(p, stat.start_stack - sizeof(back), &back) &&
	       !dp_loader_has(p->pid, back);
}

bool dp_loader_is_starting(const struct dp_process *p, uint64_t *stack)
{
	struct dp_task_stat stat;
	Elf64_Ehdr head;
	uint8_t code[sizeof(begins)];
	uint64_t back;
	const uint64_t base = loader_of(p->pid);
	if (!base || !dp_proc_stat(p->pid, 0, &stat) || !stat.start_stack ||
	    dp_mem_read(p, dp_addr_of(base), &head, sizeof(head)) != sizeof(head))
		return false;
	const uint64_t start = base + head.e_entry;
	*stack = stat.start_stack;
	return dp_mem_read(p, dp_addr_of(start), code, sizeof(code)) == sizeof(code) && !memcmp(code, begins, sizeof(code)) &&
	       word_at(p, *stack - sizeof(back), &back) && back == start + RETURNS;
}

struct dp_error *dp_entry_find_kept(const struct dp_process *p, uint64_t stack, struct dp_auxv_entry *ret)
{
	static uint64_t frames[STACK_WORDS];
	struct user_regs_struct r;
	bool is_static;
	DP_TRY(find(p, stack, ret, &is_static));
	if (ptrace(PTRACE_GETREGS, p->pid, NULL, &r) != 0)
		return dp_error(DP_TAG_GONE, "process %d (%s) ended", p->pid, p->comm);
	const size_t n = !is_static && r.rsp < stack ? (size_t)(stack - r.rsp) / sizeof(*frames) : 0;
	if (n && n <= STACK_WORDS && dp_mem_read(p, dp_addr_of(r.rsp), frames, n * sizeof(*frames)) == n * sizeof(*frames))
		for (size_t i = n; i-- > 0;)
			if (frames[i] == ret->value) {
				ret->slot = dp_addr_of(r.rsp + i * sizeof(*frames));
				return NULL;
			}
	return dp_error(DP_TAG_UNSTOPPABLE,
	                "the loader of process %d (%s) does not keep its program's entry point where glibc's does", p->pid,
	                p->comm);
}
