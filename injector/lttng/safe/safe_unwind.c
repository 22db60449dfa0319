/* SPDX-License-Identifier: MIT */
/*
 * Finds a thread's call frames with libdw, from the tables that every x86-64 library has (.eh_frame). Stacks are full of stale
 * words: on those of python3, nginx and bash an unused local contains an address in malloc forever. Only frames show what is
 * active.
 *
 * A table can be wrong, a file can have been replaced, and libdw guesses where it finds no table. So the frames are trusted only
 * if each return address follows a call instruction, and if they end where threads begin: in the program's _start (a call
 * followed by hlt) or in clone (a call followed by the exit system call). In libc's start_thread, a thread is safe only below the
 * indirect call of its own function; below the direct calls it is starting or exiting.
 */
#include "injector/lttng/safe/safe_unwind.h"

#include "base/cleanup.h"

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>

#define MOST_FRAMES 512u
#define COPY        (64u << 10)

struct dp_unwinder {
	Dwfl *dwfl;
	const struct dp_process *p;
	const struct dp_ranges *ranges;
	struct dp_image *image;
	uint64_t begin, begin_end; /* dp_unwinder_begins_at() */
	/* of the thread being judged: */
	const struct dp_held *h;
	uint8_t copy[COPY]; /* copy of its stack, from rsp on */
	size_t copied;
	unsigned nframes;
	uint64_t pc, before; /* of the outermost frame so far, and of its callee */
	bool active;         /* `pc` is not a return address */
	bool begun;          /* the frames reached the code where our own threads begin */
	bool signalled;      /* one of them is a signal frame */
	enum dp_unwound verdict;
	char *why;
};

/* ---- files ------------------------------------------------------------------------------------------------------------- */

static bool is_file(int fd, const struct dp_map *m)
{
	struct stat st;
	return fd >= 0 && !fstat(fd, &st) && st.st_ino == m->inode;
}

static int open_map(const struct dp_unwinder *u, const struct dp_map *m)
{
	char path[4200];
	snprintf(path, sizeof(path), "/proc/%d/root%s", u->p->alive, m->path);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (is_file(fd, m))
		return fd;
	if (fd >= 0)
		close(fd);
	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", u->p->pid, (unsigned long long)m->start.v,
	         (unsigned long long)m->end.v);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static int find_elf(Dwfl_Module *mod, void **user, const char *name, Dwarf_Addr base, char **file, Elf **elf)
{
	const struct dp_unwinder *u = *user;
	const struct dp_map *m = dp_image_map_at(u->image, dp_addr_of(base));
	(void)mod;
	(void)elf;
	const int fd = m ? open_map(u, m) : -1;
	if (fd >= 0)
		*file = strdup(name);
	return fd;
}

static int no_debuginfo(Dwfl_Module *mod, void **user, const char *name, Dwarf_Addr base, const char *file, const char *link,
                        GElf_Word crc, char **found)
{
	(void)mod;
	(void)user;
	(void)name;
	(void)base;
	(void)file;
	(void)link;
	(void)crc;
	(void)found;
	return -1;
}

static const Dwfl_Callbacks file_callbacks = {.find_elf = find_elf, .find_debuginfo = no_debuginfo};

static bool same_file(const struct dp_map *a, const struct dp_map *b)
{
	return a->inode == b->inode && a->dev_major == b->dev_major && a->dev_minor == b->dev_minor;
}

/* End of the run of mappings from `i` on that belong to one file; *exec: it has code. */
static size_t group(const struct dp_image *image, size_t i, bool *exec)
{
	const struct dp_map *first = dp_image_map(image, i);
	size_t end = i + 1;
	*exec = first->exec;
	for (size_t k = i + 1; k < dp_image_nmaps(image); k++) {
		const struct dp_map *m = dp_image_map(image, k);
		if (m->inode && !same_file(first, m))
			break;
		if (!m->inode)
			continue;
		*exec |= m->exec;
		end = k + 1;
	}
	return end;
}

/* Opens the tables of all files now, while no thread is held. */
static void report(struct dp_unwinder *u)
{
	bool exec;
	for (size_t i = 0, end; i < dp_image_nmaps(u->image); i = end) {
		const struct dp_map *m = dp_image_map(u->image, i);
		end = group(u->image, i, &exec);
		if (!m->inode || m->path[0] != '/' || m->offset || !exec)
			continue;
		Dwfl_Module *mod = dwfl_report_module(u->dwfl, m->path, m->start.v, dp_image_map(u->image, end - 1)->end.v);
		void **user = NULL;
		if (mod && dwfl_module_info(mod, &user, NULL, NULL, NULL, NULL, NULL, NULL) && user)
			*user = u;
	}
	dwfl_report_end(u->dwfl, NULL, NULL);
}

static int warm(Dwfl_Module *mod, void **user, const char *name, Dwarf_Addr start, void *arg)
{
	Dwarf_Addr bias;
	(void)user;
	(void)name;
	(void)start;
	(void)arg;
	dwfl_module_eh_cfi(mod, &bias);
	return DWARF_CB_OK;
}

/* ---- the thread --------------------------------------------------------------------------------------------------------- */

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread_arg)
{
	struct dp_unwinder *u = arg;
	(void)dwfl;
	if (*thread_arg)
		return 0;
	*thread_arg = u;
	return 1;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread_arg)
{
	(void)dwfl;
	(void)tid;
	*thread_arg = arg;
	return true;
}

static bool read_word(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *ret, void *arg)
{
	const struct dp_unwinder *u = arg;
	const uint64_t at = addr - u->h->regs.rsp;
	(void)dwfl;
	if (at < u->copied && u->copied - at >= sizeof(*ret)) {
		memcpy(ret, u->copy + at, sizeof(*ret));
		return true;
	}
	const struct iovec here = {ret, sizeof(*ret)}, there = {(void *)(uintptr_t)addr, sizeof(*ret)};
	return process_vm_readv(u->h->tid, &here, 1, &there, 1, 0) == sizeof(*ret);
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	const struct user_regs_struct *r = &((struct dp_unwinder *)arg)->h->regs;
	const Dwarf_Word regs[17] = {r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8,
	                             r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip};
	return dwfl_thread_state_registers(thread, 0, 17, regs);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
        .next_thread = next_thread, .get_thread = get_thread, .memory_read = read_word, .set_initial_registers = set_registers};

/* ---- frames -------------------------------------------------------------------------------------------------------------- */

static int stop(struct dp_unwinder *u, enum dp_unwound verdict)
{
	u->verdict = verdict;
	return DWARF_CB_ABORT;
}

static int look_at(Dwfl_Frame *frame, void *arg)
{
	struct dp_unwinder *u = arg;
	Dwarf_Addr pc;
	bool active;
	if (!dwfl_frame_pc(frame, &pc, &active) || u->nframes++ >= MOST_FRAMES)
		return stop(u, DP_UNWOUND_UNKNOWN);
	if (pc >= u->begin && pc < u->begin_end) {
		u->begun = true;
		return DWARF_CB_ABORT;
	}
	const struct dp_ban *ban = dp_ranges_ban(u->ranges, pc - !active);
	if (ban) {
		snprintf(u->why, 128, "it is in %s (%#llx)", ban->what, (unsigned long long)pc);
		return stop(u, DP_UNWOUND_UNSAFE);
	}
	const struct dp_code *code = dp_ranges_code(u->ranges, pc - !active);
	if (!active && (!code || !dp_code_after_call(code, pc)))
		return stop(u, DP_UNWOUND_UNKNOWN);
	u->before = u->pc;
	u->pc = pc;
	u->active = active;
	u->signalled |= active && u->nframes > 1;
	return DWARF_CB_OK;
}

static bool starts_with(const struct dp_code *c, uint64_t pc, const void *bytes, size_t n)
{
	return pc + n <= c->end && !memcmp(c->bytes + (pc - c->start), bytes, n);
}

static bool after_direct_call(const struct dp_ranges *r, uint64_t pc)
{
	const struct dp_code *c = dp_ranges_code(r, pc);
	return c && c->libc && pc - c->start >= 5 && c->bytes[pc - c->start - 5] == 0xe8 && c->bytes[pc - c->start - 2] != 0xff;
}

/* Did the frames end where threads begin? */
static enum dp_unwound judge_base(struct dp_unwinder *u)
{
	static const uint8_t hlt[] = {0xf4}, exit_call[] = {0x48, 0x89, 0xc7, 0xb8, 60, 0, 0, 0, 0x0f, 0x05};
	const struct dp_code *c = dp_ranges_code(u->ranges, u->pc);
	if (!c)
		return DP_UNWOUND_UNKNOWN;
	if (u->active) /* a launched command at its entry point */
		return u->nframes == 1 && !dp_ranges_ban(u->ranges, u->pc) ? DP_UNWOUND_SAFE : DP_UNWOUND_UNKNOWN;
	if (starts_with(c, u->pc, hlt, sizeof(hlt)))
		return DP_UNWOUND_SAFE;
	if (!starts_with(c, u->pc, exit_call, sizeof(exit_call)))
		return DP_UNWOUND_UNKNOWN;
	if (!after_direct_call(u->ranges, u->before))
		return DP_UNWOUND_SAFE;
	snprintf(u->why, 128, "it is starting or exiting");
	return DP_UNWOUND_UNSAFE;
}

enum dp_unwound dp_unwinder_judge(struct dp_unwinder *u, const struct dp_process *p, const struct dp_held *h, char why[128])
{
	if (!u)
		return DP_UNWOUND_UNKNOWN;
	const struct iovec here = {u->copy, sizeof(u->copy)}, there = {(void *)(uintptr_t)h->regs.rsp, sizeof(u->copy)};
	const ssize_t got = process_vm_readv(h->tid, &here, 1, &there, 1, 0);
	u->p = p;
	u->h = h;
	u->why = why;
	u->copied = got > 0 ? (size_t)got : 0;
	u->nframes = 0;
	u->pc = u->before = 0;
	u->verdict = DP_UNWOUND_SAFE;
	u->begun = u->signalled = false;
	const int rc = dwfl_getthread_frames(u->dwfl, 1, look_at, u);
	if (u->verdict != DP_UNWOUND_SAFE || u->begun)
		return u->verdict;
	(void)rc; /* at the outermost frame it may fail because there is no table for the caller */
	return u->nframes ? judge_base(u) : DP_UNWOUND_UNKNOWN;
}

bool dp_unwinder_met_signal(const struct dp_unwinder *u)
{
	return u->signalled;
}

struct dp_unwinder *dp_unwinder_create(const struct dp_process *p, struct dp_image *image, const struct dp_ranges *ranges)
{
	struct dp_unwinder *u = calloc(1, sizeof(*u));
	if (!u)
		return NULL;
	u->p = p;
	u->image = image;
	u->ranges = ranges;
	u->dwfl = dwfl_begin(&file_callbacks);
	if (!u->dwfl) {
		free(u);
		return NULL;
	}
	report(u);
	dwfl_getmodules(u->dwfl, warm, NULL, 0);
	if (dwfl_attach_state(u->dwfl, NULL, p->pid, &thread_callbacks, u))
		return u;
	dp_unwinder_destroy(u);
	return NULL;
}

void dp_unwinder_begins_at(struct dp_unwinder *u, uint64_t start, uint64_t end)
{
	u->begin = start;
	u->begin_end = end;
}

void dp_unwinder_destroy(struct dp_unwinder *u)
{
	if (!u)
		return;
	dwfl_end(u->dwfl);
	free(u);
}
