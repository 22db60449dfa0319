/* SPDX-License-Identifier: MIT */
/*
 * Decides when generated code may be unmapped: when no thread is in it and none will return into it.
 *
 * Stubs leave no return address on a stack (exceptions: quiesce_frames.c). A displaced call pushes the program's own, and during
 * calls into the agent the thread's pc is in the agent. So only two things can lead back: a thread's pc, and a signal frame whose
 * saved pc is ours. Its handler runs, or ran, on top of a stub, possibly on an alternate stack; the frame names the stack it
 * interrupted. Saved pcs are found by the layout of the kernel's rt_sigframe: the words in its gregs are ... RSP, RIP, EFLAGS,
 * CS|GS|FS|SS. So a word that is one of our addresses counts only if the next ones look like flags and a user code segment. Plain
 * stale words of finished calls do not match. Source: struct sigcontext_64 in the kernel's uapi/asm/sigcontext.h.
 */
#include "injector/patch/quiesce/quiesce.h"

#include "agent/trap/trap.h"
#include "injector/patch/quiesce/code_index.h"
#include "injector/patch/quiesce/quiesce_frames.h"
#include "injector/tracee/borrow/boot.h"
#include "injector/tracee/stop/moved_fault.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#define STACK_LIMIT   (UINT64_C(8) << 20)
#define RED_ZONE      128
#define USER_CS       0x33
#define FLAGS_ALWAYS  0x2u
#define FLAGS_NEVER   (~UINT64_C(0x3f7fd7))
#define FRAME_RETURN  22 /* words before the saved pc: where the frame's handler returns to */
#define UC_FLAGS_MOST 7  /* UC_FP_XSTATE, UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS */
#define RESTORER_MOST 32 /* bytes of a restorer up to its system call: 9 in glibc, musl and Go */
#define PAGE          4096

bool dp_installation_holds(const struct dp_installation *in, uint64_t pc)
{
	if (in->index)
		return dp_code_index_holds(in->index, pc);
	for (size_t i = 0; i < in->nregions; i++) {
		const struct dp_region *r = &in->region[i];
		if (r->mapped && (r->prot & PROT_EXEC) && pc >= r->addr && pc < r->addr + r->size)
			return true;
	}
	return false;
}

static void move(struct dp_held *h, const struct dp_pc_pair *pair)
{
	dp_fault_move(h, pair->original);
	h->regs.rip = pair->original;
	if (pair->fix_rcx)
		h->regs.rcx = pair->original;
	h->regs_changed = true;
}

/* Binary search; `pair` is sorted by stub. */
static const struct dp_pc_pair *pair_at(const struct dp_pc_pair *pair, size_t n, uint64_t pc)
{
	size_t lo = 0, hi = n;
	while (lo < hi) {
		const size_t mid = (lo + hi) / 2;
		if (pair[mid].stub < pc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < n && pair[lo].stub == pc ? &pair[lo] : NULL;
}

void dp_move_to_original(struct dp_held *h, const struct dp_pc_pair *pair, size_t n)
{
	const struct dp_pc_pair *at = pair_at(pair, n, h->regs.rip);
	if (at)
		move(h, at);
}

static const struct dp_pc_pair *find_pair(const struct dp_installation *in, uint64_t pc)
{
	if (in->index)
		return dp_code_index_pair(in->index, pc);
	for (size_t i = 0; i < in->nplaced; i++)
		for (size_t k = 0; k < in->placed[i].npairs; k++)
			if (in->placed[i].pair[k].stub == pc)
				return &in->placed[i].pair[k];
	return NULL;
}

/* Do the words look like RIP, EFLAGS, CS|GS|FS|SS of a signal frame? Tests the rarest match first: this runs for every word. */
static bool is_frame_shape(const uint64_t *word)
{
	return (word[2] & 0xffff) == USER_CS && (word[1] & FLAGS_ALWAYS) && !(word[1] & FLAGS_NEVER);
}

/*
 * Not dp_mem_read(), which reads guard pages too, and so from one thread's stack into the next. Reads through the thread itself:
 * any other may have ended, and then nothing could be read or found.
 */
static size_t read_stack(pid_t tid, uint64_t at, void *buf, size_t n)
{
	const struct iovec local = {buf, n}, remote = {(void *)(uintptr_t)at, n};
	ssize_t got = process_vm_readv(tid, &local, 1, &remote, 1, 0);
	return got > 0 ? (size_t)got : 0;
}

struct scan {
	struct dp_target *t;
	const struct dp_installation *in;
	const uint64_t *addr; /* addresses to find as plain words, ascending; NULL: find saved pcs in our code */
	bool *hit;            /* out: found, for each */
	size_t n;
	const struct dp_pc_pair *pair; /* or find saved pcs at one of these npairs */
	size_t npairs;
	uint64_t other[4]; /* stacks that signal frames on the way interrupted (alternate stacks) */
	size_t nother;
	pid_t tid;
	uint64_t rsp;
	bool found;
	bool whole;   /* found a signal frame with its return word: the thread's frames tell whether a handler will use it */
	bool suspect; /* what was found may be a stale word of a finished call */
};

/* Marks the address as hit if it is one of those to find. */
static void look_for(struct scan *s, uint64_t value)
{
	size_t lo = 0, hi = s->n;
	if (!s->n || value < s->addr[0] || value > s->addr[s->n - 1])
		return;
	while (lo < hi) {
		const size_t mid = (lo + hi) / 2;
		if (s->addr[mid] < value)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < s->n && s->addr[lo] == value; lo++)
		s->hit[lo] = true;
}

/* Is the saved pc of a frame one to find? */
static bool is_wanted(const struct scan *s, uint64_t pc)
{
	if (s->pair)
		return pair_at(s->pair, s->npairs, pc);
	return !s->addr && (dp_installation_holds(s->in, pc) || dp_frames_in_sink(s->in->frames, pc));
}

/* Does the code there make a system call soon, as a signal's restorer must? Also true if it cannot be read. */
static bool may_be_restorer(const struct scan *s, uint64_t pc)
{
	uint8_t code[RESTORER_MOST];
	const size_t n = dp_mem_read(&s->t->process, dp_addr_of(pc), code, sizeof(code));
	return !n || memmem(code, n, "\x0f\x05", 2);
}

static bool is_mapped_low(uint64_t pc)
{
	return pc >= PAGE && pc < UINT64_C(1) << 47;
}

/*
 * A frame whose handler has returned can remain for long in a part of the stack that a later call has allocated but not written.
 * Two kinds are certainly stale.
 *
 * One returns to our own restorer: it belongs to the agent's trap and fault handler, which has sent its thread into a stub. A
 * thread that is still in that handler has its pc in the agent, and no other handler runs on top of it. If that agent is gone,
 * the handler's mark is still recognised.
 *
 * The other is partly overwritten: its return word leads to no restorer, and its ucontext does not begin as the kernel fills it.
 * (A copy of a ucontext, which a program may restore one day, does.)
 */
static bool is_over(const struct scan *s, const uint64_t *word, size_t before)
{
	if (before < FRAME_RETURN)
		return false;
	const uint64_t back = word[-FRAME_RETURN], flags = word[-FRAME_RETURN + 1], link = word[-FRAME_RETURN + 2];
	if (link == DP_FRAME_OVER || (s->in && dp_installation_holds(s->in, back)))
		return true;
	return (flags > UC_FLAGS_MOST || link) && (!is_mapped_low(back) || !may_be_restorer(s, back));
}

static void judge_frame(struct scan *s, const uint64_t *word, size_t before)
{
	if (!is_wanted(s, word[0]) || is_over(s, word, before))
		return;
	const uint64_t back = before < FRAME_RETURN ? 0 : word[-FRAME_RETURN];
	if (is_mapped_low(back) && may_be_restorer(s, back))
		s->whole = true;
	else
		s->found = true;
}

static void look_at_word(struct scan *s, const uint64_t *word, size_t before, size_t left)
{
	if (s->addr)
		look_for(s, *word);
	if (!s->addr && !s->pair && s->in->calls_out)
		s->suspect |= dp_frames_suspect(s->in, *word, s->rsp);
	if (left < 3 || !is_frame_shape(word))
		return;
	judge_frame(s, word, before);
	if (before && s->nother < sizeof(s->other) / sizeof(*s->other))
		s->other[s->nother++] = word[-1]; /* RSP precedes RIP */
}

/* Scans a stack from `rsp` to its end, or until something is found. Returns the end of the scanned range. */
static uint64_t scan_from(struct scan *s, uint64_t rsp)
{
	static uint64_t words[16384];
	const size_t most = sizeof(words) / sizeof(*words);
	uint64_t at = (rsp - RED_ZONE) & ~UINT64_C(7);
	const uint64_t end = dp_writable_end(&s->t->process, at, at + STACK_LIMIT);
	size_t seen = 0;
	while (at < end && !s->found) {
		const size_t part = end - at < sizeof(words) ? end - at : sizeof(words);
		size_t n = read_stack(s->tid, at, words, part) / sizeof(*words);
		for (size_t i = seen; i < n && !s->found; i++)
			look_at_word(s, &words[i], i, n - i);
		if (n < most)
			return at + n * sizeof(*words);
		seen = FRAME_RETURN; /* a frame's words may be split over two reads */
		at += sizeof(words) - (FRAME_RETURN + 4) * sizeof(*words);
	}
	return at;
}

static bool scan_stacks(struct scan *s, const struct dp_held *h)
{
	s->nother = 0;
	s->tid = h->tid;
	s->rsp = h->regs.rsp;
	const uint64_t end = scan_from(s, h->regs.rsp);
	for (size_t i = 0; i < s->nother && !s->found; i++)
		if (s->other[i] < h->regs.rsp || s->other[i] >= end)
			scan_from(s, s->other[i]);
	return s->found;
}

/* A handler that has returned may leave a whole frame, in stack that a later call has allocated but not written. */
static bool returns(const struct scan *s, const struct dp_quiesce_frames *frames, const struct dp_held *h)
{
	return s->whole && !dp_frames_left_over(frames, h);
}

/* Moves the thread out of a stub if possible. True if it is not in our code (any more). */
static bool stands_clear(const struct dp_target *t, const struct dp_installation *in, struct dp_held *h)
{
	const struct dp_pc_pair *pair = find_pair(in, h->regs.rip);
	if (!pair) /* it may be on its way to a stub through a dead tool's boot code */
		return !dp_installation_holds(in, h->regs.rip) && !dp_boot_leftover_at(&t->process, h->regs.rip);
	if (dp_fault_waits(h))
		return false;
	move(h, pair);
	return true;
}

/* Checks all pcs first, which is cheap, because all threads are held meanwhile. */
bool dp_quiesce(struct dp_target *t, const struct dp_installation *in, struct dp_freeze *f, char why[128])
{
	for (size_t i = 0; i < f->n; i++)
		if (!stands_clear(t, in, &f->thread[i])) {
			snprintf(why, 128, "thread %d is in a probe", f->thread[i].tid);
			return false;
		}
	for (size_t i = 0; i < f->n; i++) {
		struct scan s = {.t = t, .in = in};
		if (scan_stacks(&s, &f->thread[i]) || returns(&s, in->frames, &f->thread[i])) {
			snprintf(why, 128, "thread %d runs a signal handler that interrupted a probe", f->thread[i].tid);
			return false;
		}
		s.suspect |= dp_frames_in_sink(in->frames, f->thread[i].regs.rip);
		if (s.suspect && !dp_frames_no_hit(in->frames, &t->process, &f->thread[i]) &&
		    !dp_frames_clear(in->frames, &f->thread[i], why))
			return false;
	}
	return true;
}

/* False if the thread has ended meanwhile. */
static bool has_stack(const struct dp_held *h)
{
	uint64_t top;
	return read_stack(h->tid, h->regs.rsp, &top, sizeof(top)) == sizeof(top);
}

bool dp_quiesce_asleep(struct dp_target *t, const struct dp_installation *in, const struct dp_held *h)
{
	struct scan s = {.t = t, .in = in};
	if (find_pair(in, h->regs.rip) || dp_installation_holds(in, h->regs.rip) ||
	    dp_boot_leftover_at(&t->process, h->regs.rip) || dp_frames_in_sink(in->frames, h->regs.rip))
		return false;
	return has_stack(h) && !scan_stacks(&s, h) && !s.whole && !s.suspect;
}

bool dp_returns_to(struct dp_target *t, const struct dp_quiesce_frames *frames, const struct dp_held *h,
                   const struct dp_pc_pair *pair, size_t n)
{
	struct scan s = {.t = t, .pair = pair, .npairs = n};
	return n && (scan_stacks(&s, h) || returns(&s, frames, h));
}

bool dp_stays_away(struct dp_target *t, const struct dp_held *h, const struct dp_pc_pair *pair, size_t n)
{
	return !pair_at(pair, n, h->regs.rip) && has_stack(h) && !dp_returns_to(t, NULL, h, pair, n);
}

/* Checks the thread's pc, and the pc at which the kernel restarts an interrupted call. */
static void look_at_pc(struct scan *s, const struct user_regs_struct *r)
{
	const bool restarts = (int64_t)r->orig_rax >= 0 && (int64_t)r->rax <= -512 && (int64_t)r->rax >= -516;
	look_for(s, r->rip);
	if (restarts)
		look_for(s, r->rip - 2);
}

void dp_stands_at(struct dp_target *t, const struct dp_freeze *f, const uint64_t *addr, size_t n, bool *hit)
{
	struct scan s = {.t = t, .addr = addr, .hit = hit, .n = n};
	for (size_t i = 0; i < f->n; i++) {
		look_at_pc(&s, &f->thread[i].regs);
		scan_stacks(&s, &f->thread[i]);
		if (dp_boot_leftover_at(&t->process, f->thread[i].regs.rip)) /* it may go anywhere */
			memset(hit, true, n * sizeof(*hit));
	}
}
