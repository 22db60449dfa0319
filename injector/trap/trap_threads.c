/* SPDX-License-Identifier: MIT */
/*
 * Checks where threads are while traps are installed and removed.
 *
 * When the first trap is installed, no thread may block our signals or be about to: not now (its mask), not when the system call
 * it waits in returns (the kernel's saved mask), not when a signal handler returns (the mask in its frame, which is recognised by
 * its layout, as in quiesce.c), and not by a system call whose hook it has already passed.
 */
#include "injector/tracee/proc/proc.h"
#include "injector/tracee/stop/temp_mask.h"
#include "injector/trap/trap.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define STACK_LIMIT   (UINT64_C(8) << 20)
#define RED_ZONE      128
#define USER_CS       0x33
#define FLAGS_ALWAYS  0x2u
#define FLAGS_NEVER   (~UINT64_C(0x3f7fd7))
#define SI_KERNEL_    0x80
#define RESTART_BLOCK UINT64_C(-516) /* ERESTART_RESTARTBLOCK */

enum {
	FRAME_FLAGS = 1, /* word offsets from the saved rip */
	FRAME_CS = 2,
	FRAME_MASK = 16,
	FRAME_WORDS = 17,
	STACKS = 4, /* stacks that one thread's signal frames may lead to */
};

/* ---- partly executed code ------------------------------------------------------------------------------------------------- */

/* After a hook's site, but before the end of its system call. */
static bool behind_hook(const struct dp_target *t, uint64_t pc)
{
	for (size_t i = 0; i < t->trap.nhooks; i++)
		if (pc > t->trap.hook[i].site && pc <= t->trap.hook[i].syscall)
			return true;
	return false;
}

/*
 * After a call that a hook's stub makes for the program, because the hook displaced the call's instruction and does not need it.
 * A thread that sleeps there is as good as after the program's own instruction, so it does not prevent arming.
 */
static bool behind_call(const struct dp_target *t, uint64_t pc)
{
	for (size_t i = 0; i < t->in.nplaced; i++) {
		const struct dp_placed *p = &t->in.placed[i];
		for (size_t k = 0; p->probe == DP_NO_PROBE && k < p->npairs; k++)
			if (p->pair[k].stub == pc)
				return p->pair[k].fix_rcx;
	}
	return false;
}

static bool between(const struct dp_target *t, uint64_t pc)
{
	return behind_hook(t, pc) || (dp_installation_holds(&t->in, pc) && !behind_call(t, pc));
}

/* ---- signal frames --------------------------------------------------------------------------------------------------------- */

static size_t read_stack(pid_t tid, uint64_t at, void *buf, size_t n)
{
	const struct iovec local = {buf, n}, remote = {(void *)(uintptr_t)at, n};
	const ssize_t got = process_vm_readv(tid, &local, 1, &remote, 1, 0);
	return got > 0 ? (size_t)got : 0;
}

struct frames { /* what is found on a thread's stacks */
	pid_t tid;
	uint64_t other[STACKS];
	size_t nother;
	bool blocked; /* the thread blocks one of our signals, because of its signal handler or of the interrupted code */
	const char *why;
};

static void look_at(const struct dp_target *t, struct frames *s, const uint64_t *word)
{
	if ((word[FRAME_CS] & 0xffff) != USER_CS || !(word[FRAME_FLAGS] & FLAGS_ALWAYS) || (word[FRAME_FLAGS] & FLAGS_NEVER))
		return;
	if (word[FRAME_MASK] & t->trap.signals)
		s->why = "runs a signal handler that returns to code with dynprobe's signals blocked";
	else if (s->blocked)
		s->why = "runs a signal handler with dynprobe's signals blocked";
	else if (between(t, word[0]))
		s->why = "runs a signal handler that interrupted the code before a system call";
	if (s->nother < STACKS)
		s->other[s->nother++] = word[-1]; /* RSP precedes RIP */
}

/* Returns the end of the range that was read. */
static uint64_t look_through(const struct dp_target *t, struct frames *s, uint64_t rsp)
{
	static uint64_t words[16384];
	const size_t most = sizeof(words) / sizeof(*words);
	uint64_t at = (rsp - RED_ZONE) & ~UINT64_C(7);
	const uint64_t end = dp_writable_end(&t->process, at, at + STACK_LIMIT);
	while (at < end && !s->why) {
		const size_t part = end - at < sizeof(words) ? end - at : sizeof(words);
		const size_t n = read_stack(s->tid, at, words, part) / sizeof(*words);
		for (size_t i = 1; i + FRAME_WORDS <= n && !s->why; i++)
			look_at(t, s, &words[i]);
		if (n < most)
			return at + n * sizeof(*words);
		at += sizeof(words) - (FRAME_WORDS + 1) * sizeof(*words);
	}
	return at;
}

static const char *frames_in_the_way(const struct dp_target *t, const struct dp_held *h, bool blocked)
{
	struct frames s = {.tid = h->tid, .blocked = blocked};
	const uint64_t end = look_through(t, &s, h->regs.rsp);
	for (size_t i = 0; i < s.nother && !s.why; i++)
		if (s.other[i] < h->regs.rsp || s.other[i] >= end)
			look_through(t, &s, s.other[i]);
	return s.why;
}

/* ---- arming ------------------------------------------------------------------------------------------------------------------
 */

/* Does it wait in a call with a temporary mask that blocks our signals? The call would be restarted with that mask. */
static bool waits_masked(const struct dp_target *t, const struct dp_held *h, uint64_t blocked)
{
	return (blocked & t->trap.signals) && dp_temp_mask_waits(h);
}

/* Faster than the forty lines of /proc/PID/status, which would take longer than all other checks of a stopped thread. */
static bool is_queued(pid_t tid, int sig)
{
	siginfo_t queued[8];
	struct __ptrace_peeksiginfo_args from = {.nr = sizeof(queued) / sizeof(*queued)};
	long n;
	while ((n = ptrace(PTRACE_PEEKSIGINFO, tid, &from, queued)) > 0) {
		for (long i = 0; i < n; i++)
			if (queued[i].si_signo == sig)
				return true;
		from.off += (uint64_t)n;
	}
	return n < 0;
}

/* An int3 queues a SIGTRAP. Signals of other faults come from the program's own instructions and belong to the program. */
static bool is_pending(const struct dp_held *h)
{
	return h->pending_signal == SIGTRAP || is_queued(h->tid, SIGTRAP);
}

/* For a thread that waits with a temporary signal mask, ptrace reports the thread's own mask instead. */
static uint64_t blocked_now(const struct dp_target *t, const struct dp_held *h)
{
	uint64_t mask;
	if (dp_temp_mask_waits(h) || ptrace(PTRACE_GETSIGMASK, h->tid, (void *)sizeof(mask), &mask) != 0)
		return dp_proc_mask(t->process.pid, h->tid, "SigBlk");
	return mask;
}

const char *dp_trap_in_the_way(struct dp_target *t, const struct dp_held *h)
{
	const uint64_t blocked = blocked_now(t, h);
	if (waits_masked(t, h, blocked))
		return "waits with a temporary mask that blocks dynprobe's signals";
	if (is_pending(h))
		return "has a pending SIGTRAP";
	if (between(t, h->regs.rip))
		return "is about to make a system call";
	return frames_in_the_way(t, h, blocked & t->trap.signals);
}

/* ---- masks ----------------------------------------------------------------------------------------------------------------- */

static uint32_t id_of(const struct dp_held *h)
{
	return (uint32_t)(h->ns_tid ? h->ns_tid : h->tid);
}

/* The first of a thread's slots that contains `wanted`; 0 if none does. */
static uint64_t find_place(struct dp_target *t, uint64_t trap, uint32_t tid, uint32_t wanted, uint64_t *word)
{
	for (uint32_t i = 0; i < DP_TRAP_PROBES; i++) {
		const uint64_t at = trap + offsetof(struct dp_trap, blocked) + (tid + i) % DP_TRAP_THREADS * sizeof(*word);
		if (dp_mem_read(&t->process, dp_addr_of(at), word, sizeof(*word)) == sizeof(*word) && (uint32_t)*word == wanted)
			return at;
	}
	return 0;
}

/* The registers are written back when the thread is released. */
static bool set_mask(const struct dp_target *t, struct dp_held *h, const struct dp_temp_mask *m)
{
	h->regs_changed = true;
	return dp_temp_mask_give_back(&t->process, h, m);
}

struct dp_error *dp_trap_unblock(struct dp_target *t, struct dp_held *h)
{
	struct dp_temp_mask m;
	uint64_t free;
	const uint32_t tid = id_of(h);
	if (h->exited || !dp_temp_mask_take(&t->process, h, &m) || !(m.own & t->trap.signals))
		return NULL;
	const uint64_t at = find_place(t, t->in.trap, tid, 0, &free), word = tid | (m.own & t->trap.signals) << DP_TRAP_BLOCKED;
	if (!at)
		return dp_error(DP_TAG_TRAP_UNSAFE, "too many threads of process %d block dynprobe's signals", t->process.pid);
	DP_TRY(dp_mem_write(&t->process, dp_addr_of(at), &word, sizeof(word)));
	m.own &= ~t->trap.signals;
	if (set_mask(t, h, &m))
		return NULL;
	return dp_error(DP_TAG_TRAP_UNSAFE, "thread %d of process %d blocks dynprobe's signals", h->tid, t->process.pid);
}

/* Signals that arrived while blocked are delivered when the program unblocks them. */
void dp_trap_block(struct dp_target *t, uint64_t trap, struct dp_held *h)
{
	const uint64_t none = 0;
	struct dp_temp_mask m;
	uint64_t word = 0;
	const uint64_t at = h->exited ? 0 : find_place(t, trap, id_of(h), id_of(h), &word);
	if (!at || !dp_temp_mask_take(&t->process, h, &m))
		return;
	m.own |= word >> DP_TRAP_BLOCKED & 0xffff;
	set_mask(t, h, &m);
	dp_error_destroy(dp_mem_write(&t->process, dp_addr_of(at), &none, sizeof(none)));
	for (int sig = 1; sig < DP_TRAP_SIGNALS; sig++)
		if (word >> DP_TRAP_PENDING >> (sig - 1) & 1)
			syscall(SYS_tgkill, t->process.pid, h->tid, sig);
}

static uint64_t stub_of(struct dp_target *t, uint64_t site)
{
	struct dp_trap trap;
	if (dp_mem_read(&t->process, dp_addr_of(t->in.trap), &trap, sizeof(trap)) != sizeof(trap))
		return 0;
	for (uint32_t lo = 0, hi = trap.nsites; lo < hi;) { /* ascending */
		const uint32_t mid = lo + (hi - lo) / 2;
		struct dp_fixup at;
		if (dp_mem_read(&t->process, dp_addr_of(trap.sites + mid * sizeof(at)), &at, sizeof(at)) != sizeof(at))
			return 0;
		if (at.pc == site)
			return at.to;
		if (at.pc < site)
			lo = mid + 1;
		else
			hi = mid;
	}
	return 0;
}

/*
 * For a call that the kernel would resume (nanosleep and others remember the time left), when its instruction has become a trap.
 * The signal of the trap would make the kernel forget that, and the call fail with EINTR. So the thread continues in the stub
 * directly.
 */
void dp_trap_restart(struct dp_target *t, struct dp_held *h)
{
	const uint64_t site = h->regs.rip - 2;
	uint8_t now = 0;
	if (h->exited || (int64_t)h->regs.orig_rax < 0 || h->regs.rax != RESTART_BLOCK ||
	    dp_mem_read(&t->process, dp_addr_of(site), &now, 1) != 1 || now != 0xcc)
		return;
	const uint64_t stub = stub_of(t, site);
	if (!stub)
		return;
	h->regs.rip = stub;
	h->regs.rax = SYS_restart_syscall;
	h->regs.orig_rax = UINT64_MAX;
	h->regs_changed = true;
}

/* ---- disarming ---------------------------------------------------------------------------------------------------------------
 */

void dp_trap_rewind(struct dp_held *h, const struct dp_fixup *site, uint32_t nsites)
{
	siginfo_t si = {0};
	if (h->pending_signal != SIGTRAP || ptrace(PTRACE_GETSIGINFO, h->tid, NULL, &si) != 0 || si.si_code != SI_KERNEL_)
		return;
	for (uint32_t i = 0; i < nsites; i++)
		if (site[i].pc == h->regs.rip - 1) {
			h->regs.rip--;
			h->regs_changed = true;
			h->pending_signal = 0;
			return;
		}
}

/*
 * A repeated call starts with the thread's own mask, not with the temporary mask that it was stopped with. Otherwise a signal
 * that only the call lets through would be handled before the call, which would then wait forever. False if such a signal has
 * arrived: that ends the call soon.
 */
static bool before_the_call(const struct dp_target *t, const struct dp_held *h)
{
	static const char *const fields[] = {"SigPnd", "ShdPnd", "SigBlk"};
	uint64_t mask[3], own;
	dp_proc_masks(t->process.pid, h->tid, fields, mask, 3);
	if (h->pending_signal || ((mask[0] | mask[1]) & ~mask[2]))
		return false;
	return !ptrace(PTRACE_GETSIGMASK, h->tid, (void *)sizeof(own), &own) &&
	       !ptrace(PTRACE_SETSIGMASK, h->tid, (void *)sizeof(own), &own);
}

/* A thread that waits in a call made by a hook repeats it at the program's own instruction, if the kernel would restart it. */
static bool move_out(struct dp_target *t, const struct dp_trap *trap, struct dp_held *h)
{
	const int64_t rax = (int64_t)h->regs.rax;
	struct dp_regs was;
	if (!h->in_syscall_stop || rax > -512 || rax < -516 || h->regs.rip != trap->called ||
	    dp_mem_read(&t->process, dp_addr_of(h->regs.rbx), &was, sizeof(was)) != sizeof(was) || !before_the_call(t, h))
		return false;
	struct user_regs_struct *r = &h->regs;
	unsigned long long *const to[] = {&r->rax, &r->rcx, &r->rdx, &r->rbx, &r->rsp, &r->rbp, &r->rsi, &r->rdi,
	                                  &r->r8,  &r->r9,  &r->r10, &r->r11, &r->r12, &r->r13, &r->r14, &r->r15};
	for (size_t i = 0; i < sizeof(to) / sizeof(*to); i++)
		*to[i] = was.gpr[i];
	r->rip = was.rip;
	r->eflags = was.rflags;
	r->orig_rax = UINT64_MAX;
	h->regs_changed = true;
	return true;
}

bool dp_trap_noted(const struct dp_trap *trap, const struct dp_held *h)
{
	for (uint32_t i = 0, tid = id_of(h); i < DP_TRAP_PROBES; i++)
		if ((uint32_t)trap->blocked[(tid + i) % DP_TRAP_THREADS] == tid)
			return true;
	return false;
}

/* The return of a signal handler would undo the mask that is set now. */
static bool in_handler(struct dp_target *t, const struct dp_trap *trap, const struct dp_held *h)
{
	return dp_trap_noted(trap, h) && frames_in_the_way(t, h, true);
}

bool dp_trap_clear(struct dp_target *t, const struct dp_trap *trap, struct dp_held *h, bool exactly)
{
	if (exactly && in_handler(t, trap, h))
		return false;
	if (is_pending(h))
		return false;
	return h->regs.rip - trap->text >= trap->text_size || move_out(t, trap, h);
}
