/* SPDX-License-Identifier: MIT */
/*
 * Where threads stand while traps come and go.
 *
 * Nobody may have our signals blocked when the first trap comes to stand, and nobody be about to: not now (the mask), not when
 * the call that it waits in is over (the kernel's saved mask), not when a signal handler returns (the mask in its frame, which is
 * found by its shape, as in quiesce.c), not by a system call behind a hook that it has passed already.
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
	FRAME_FLAGS = 1, /* words from the saved rip on */
	FRAME_CS = 2,
	FRAME_MASK = 16,
	FRAME_WORDS = 17,
	STACKS = 4, /* that one thread's signal frames may lead through */
};

/* ---- code of which a part has run ------------------------------------------------------------------------------------------ */

/* Behind a hook's site, but not behind its system call. */
static bool behind_hook(const struct dp_target *t, uint64_t pc)
{
	for (size_t i = 0; i < t->trap.nhooks; i++)
		if (pc > t->trap.hook[i].site && pc <= t->trap.hook[i].syscall)
			return true;
	return false;
}

/*
 * Behind a call that a hook's stub makes for the program, as one that the hook is not for is where the hook took its
 * instruction's place: a thread that sleeps there for long is where it would be behind the program's own instruction, and no more
 * in the way.
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

struct frames { /* what a thread's stacks say */
	pid_t tid;
	uint64_t other[STACKS];
	size_t nother;
	bool blocked; /* the thread has one of our signals blocked: by the handler that it is in, or by what that one interrupted?
	               */
	const char *why;
};

static void look_at(const struct dp_target *t, struct frames *s, const uint64_t *word)
{
	if ((word[FRAME_CS] & 0xffff) != USER_CS || !(word[FRAME_FLAGS] & FLAGS_ALWAYS) || (word[FRAME_FLAGS] & FLAGS_NEVER))
		return;
	if (word[FRAME_MASK] & t->trap.signals)
		s->why = "runs a signal handler behind which it has our signals blocked";
	else if (s->blocked)
		s->why = "runs a signal handler with our signals blocked";
	else if (between(t, word[0]))
		s->why = "runs a signal handler that interrupted a system call's preparation";
	if (s->nother < STACKS)
		s->other[s->nother++] = word[-1]; /* RSP comes before RIP */
}

/* How far that was. */
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

/* Does it wait with a mask that the call was given, and with SIGTRAP in it? The call would be restarted with that mask. */
static bool waits_masked(const struct dp_target *t, const struct dp_held *h, uint64_t blocked)
{
	return (blocked & t->trap.signals) && dp_temp_mask_waits(h);
}

/* /proc would say it in a file of forty lines, which takes longer than the rest of what is asked of a thread that stands. */
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

/* An int3 has it sent. Another fault's signal, for an instruction of the program, is the program's whoever stands in the kernel.
 */
static bool is_pending(const struct dp_held *h)
{
	return h->pending_signal == SIGTRAP || is_queued(h->tid, SIGTRAP);
}

/* Of a thread that waits with a mask of the moment, ptrace says what its own is. */
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
		return "waits with our signals blocked for the moment";
	if (is_pending(h))
		return "is about to get a SIGTRAP";
	if (between(t, h->regs.rip))
		return "is in front of a system call";
	return frames_in_the_way(t, h, blocked & t->trap.signals);
}

/* ---- masks ----------------------------------------------------------------------------------------------------------------- */

static uint32_t id_of(const struct dp_held *h)
{
	return (uint32_t)(h->ns_tid ? h->ns_tid : h->tid);
}

/* The first of a thread's places that is noted for `wanted`; 0 if none is. */
static uint64_t find_place(struct dp_target *t, uint64_t trap, uint32_t tid, uint32_t wanted, uint64_t *word)
{
	for (uint32_t i = 0; i < DP_TRAP_PROBES; i++) {
		const uint64_t at = trap + offsetof(struct dp_trap, blocked) + (tid + i) % DP_TRAP_THREADS * sizeof(*word);
		if (dp_mem_read(&t->process, dp_addr_of(at), word, sizeof(*word)) == sizeof(*word) && (uint32_t)*word == wanted)
			return at;
	}
	return 0;
}

/* Its registers are written back when it is let go. */
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
		return dp_error(DP_TAG_TRAP_UNSAFE, "too many threads of process %d have our signals blocked", t->process.pid);
	DP_TRY(dp_mem_write(&t->process, dp_addr_of(at), &word, sizeof(word)));
	m.own &= ~t->trap.signals;
	if (set_mask(t, h, &m))
		return NULL;
	return dp_error(DP_TAG_TRAP_UNSAFE, "thread %d of process %d has our signals blocked", h->tid, t->process.pid);
}

/* What came while it was blocked comes when the program ends that. */
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
 * A call that the kernel is to go on with (nanosleep and its like remember how much is left) and on whose instruction a trap has
 * come to stand: the way through the trap's handler would make the kernel forget, and the call end with EINTR. The thread goes on
 * in the stub at once.
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
 * A call that is made anew begins under the thread's own mask, not under the mask of the moment that it was stopped with: a
 * signal that the call alone lets through would otherwise be handled in front of it, and the call wait for ever. False if one has
 * come already: that ends the call, which takes no time.
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

/* A thread that waits in a call which a hook has made for it makes it anew where the program does, if the kernel would restart
 * it. */
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

/* A signal handler's end would undo what is set now. */
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
