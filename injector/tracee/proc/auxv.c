/* SPDX-License-Identifier: MIT */
/* The stack after exec holds argc, argv, 0, environment, 0, pairs of words (System V AMD64 ABI, 3.4.1). */
#include "injector/tracee/proc/auxv.h"

#include <elf.h>
#include <sys/ptrace.h>

#define MOST_WORDS (UINT64_C(1) << 21) /* the kernel's limit on arguments is far lower */
#define PAGE       UINT64_C(4096)

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

struct dp_error *dp_entry_find(const struct dp_process *p, struct dp_auxv_entry *ret, bool *is_static)
{
	struct user_regs_struct r;
	struct words words = {.p = p};
	uint64_t at, pair[2], base = 0;
	struct dp_auxv_entry entry = {.value = 0};
	if (ptrace(PTRACE_GETREGS, p->pid, NULL, &r) != 0)
		return dp_error(DP_TAG_GONE, "process %d (%s) ended", p->pid, p->comm);
	at = r.rsp + sizeof(uint64_t);
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
