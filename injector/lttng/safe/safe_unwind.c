/* SPDX-License-Identifier: MIT */
/*
 * Finds a thread's call frames from the tables that every x86-64 library has (.eh_frame). Stacks are full of stale words: on
 * those of python3, nginx and bash an unused local contains an address in malloc forever. Only frames show what is active.
 *
 * A table can be wrong, and code can be without one. So the frames are trusted only if each return address follows a call
 * instruction, and if they end where threads begin: in the program's _start (a call followed by hlt) or in clone (a call followed
 * by the exit system call). In libc's start_thread, a thread is safe only below the indirect call of its own function; below the
 * direct calls it is starting or exiting.
 */
#include "injector/lttng/safe/safe_unwind.h"

#include "probes/frame/frame.h"
#include "probes/image/module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define MOST_FRAMES 512u
#define COPY        (64u << 10)

struct dp_unwinder {
	const struct dp_ranges *ranges;
	uint64_t begin, begin_end; /* dp_unwinder_begins_at() */
	/* of the thread being judged: */
	pid_t tid;
	uint64_t stack;     /* its rsp */
	uint8_t copy[COPY]; /* copy of its stack, from rsp on */
	size_t copied;
	char *why;
	struct dp_frame_regs regs; /* of the outermost frame so far */
	struct dp_frule rule;      /* from there to its caller */
	uint64_t pc, before;       /* of that frame, and of its callee */
	bool is_exact;             /* it was reached by no call: the innermost, or what a signal interrupted */
	bool is_active;            /* `pc` is not a return address: so, or the kernel's signal frame */
	bool signalled;            /* one of them is a signal frame */
	unsigned nframes;
};

/* ---- memory ---------------------------------------------------------------------------------------------------------------- */

static size_t read_stack(pid_t tid, uint64_t addr, void *buf, size_t n)
{
	const struct iovec here = {buf, n}, there = {(void *)(uintptr_t)addr, n};
	const ssize_t got = process_vm_readv(tid, &here, 1, &there, 1, 0);
	return got > 0 ? (size_t)got : 0;
}

static bool get(void *data, uint64_t addr, void *buf, size_t n)
{
	const struct dp_unwinder *u = data;
	const uint64_t at = addr - u->stack;
	if (at >= u->copied || u->copied - at < n)
		return read_stack(u->tid, addr, buf, n) == n;
	memcpy(buf, u->copy + at, n);
	return true;
}

/* ---- frames -------------------------------------------------------------------------------------------------------------- */

static void start(struct dp_unwinder *u, const struct dp_held *h, char *why)
{
	u->tid = h->tid;
	u->stack = h->regs.rsp;
	u->copied = read_stack(h->tid, h->regs.rsp, u->copy, sizeof(u->copy));
	u->why = why;
	u->regs = dp_frame_regs_of(&h->regs);
	u->pc = h->regs.rip;
	u->before = 0;
	u->is_exact = true;
	u->signalled = false;
	u->nframes = 0;
}

/* Judges one frame. DP_UNWOUND_SAFE: its caller decides. */
static enum dp_unwound look_at(struct dp_unwinder *u)
{
	const struct dp_code *code = dp_ranges_code(u->ranges, u->pc - !u->is_exact);
	if (u->nframes++ >= MOST_FRAMES)
		return DP_UNWOUND_UNKNOWN;
	if (!code || !dp_frule_of_module(code->module, dp_addr_of(u->pc - !u->is_exact), &u->rule))
		u->rule = (struct dp_frule){0};
	u->is_active = u->is_exact || u->rule.is_signal;
	u->signalled |= u->is_active && u->nframes > 1;
	const struct dp_ban *ban = dp_ranges_ban(u->ranges, u->pc - !u->is_active);
	if (ban) {
		snprintf(u->why, 128, "it is in %s (%#llx)", ban->what, (unsigned long long)u->pc);
		return DP_UNWOUND_UNSAFE;
	}
	return u->is_active || (code && dp_code_after_call(code, u->pc)) ? DP_UNWOUND_SAFE : DP_UNWOUND_UNKNOWN;
}

/* Goes on to the caller. False if there is none, or no table leads to it. */
static bool climb(struct dp_unwinder *u)
{
	const struct dp_frame_memory memory = {get, u};
	const uint64_t cfa = dp_frule_cfa(&u->rule, &u->regs, &memory);
	struct dp_frame_regs caller;
	if (!cfa || !dp_frule_step(&u->rule, &u->regs, cfa, &memory, &caller) || !caller.value[DP_FRAME_PC])
		return false;
	u->regs = caller;
	u->before = u->pc;
	u->pc = caller.value[DP_FRAME_PC];
	u->is_exact = u->rule.is_signal;
	return true;
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
	if (u->is_active) /* a launched command at its entry point */
		return u->nframes == 1 && u->rule.is_end ? DP_UNWOUND_SAFE : DP_UNWOUND_UNKNOWN;
	if (starts_with(c, u->pc, hlt, sizeof(hlt)))
		return DP_UNWOUND_SAFE;
	if (!starts_with(c, u->pc, exit_call, sizeof(exit_call)))
		return DP_UNWOUND_UNKNOWN;
	if (!after_direct_call(u->ranges, u->before))
		return DP_UNWOUND_SAFE;
	snprintf(u->why, 128, "it is starting or exiting");
	return DP_UNWOUND_UNSAFE;
}

enum dp_unwound dp_unwinder_judge(struct dp_unwinder *u, const struct dp_held *h, char why[128])
{
	if (!u)
		return DP_UNWOUND_UNKNOWN;
	start(u, h, why);
	do {
		if (u->pc >= u->begin && u->pc < u->begin_end)
			return DP_UNWOUND_SAFE;
		const enum dp_unwound verdict = look_at(u);
		if (verdict != DP_UNWOUND_SAFE)
			return verdict;
	} while (climb(u));
	return judge_base(u);
}

bool dp_unwinder_met_signal(const struct dp_unwinder *u)
{
	return u->signalled;
}

struct dp_unwinder *dp_unwinder_create(const struct dp_ranges *ranges)
{
	struct dp_unwinder *u = calloc(1, sizeof(*u));
	if (!u)
		return NULL;
	u->ranges = ranges;
	for (size_t i = 0; i < ranges->ncode; i++) /* opens all tables now, while no thread is held */
		dp_elf_cfi(ranges->code[i].module->elf);
	return u;
}

void dp_unwinder_begins_at(struct dp_unwinder *u, uint64_t start, uint64_t end)
{
	u->begin = start;
	u->begin_end = end;
}

void dp_unwinder_destroy(struct dp_unwinder *u)
{
	free(u);
}
