/* SPDX-License-Identifier: MIT */
/*
 * The system calls by which a program could take SIGTRAP from us. Their `syscall` instructions are hooked; each call is made here
 * with SIGTRAP taken out of what the program passes, and put back into what it gets, so that it sees its own settings.
 *
 * The program's pointers are followed by system calls, which report a bad one as the kernel would have. Everything else goes the
 * program's own way: a hook that returns NULL has changed nothing.
 */
#include "agent/trap_agent.h"

enum {
	NR_RT_SIGACTION = 13,
	NR_RT_SIGPROCMASK = 14,
	NR_RT_SIGSUSPEND = 130,
	NR_PSELECT6 = 270,
	NR_PPOLL = 271,
	NR_EPOLL_PWAIT = 281,
	NR_IO_PGETEVENTS = 333,
	NR_IO_URING_ENTER = 426,
	NR_CLONE3 = 435,
	NR_EPOLL_PWAIT2 = 441,
	RAX = 0,
	RCX = 1,
	RDX = 2,
	RSI = 6,
	RDI = 7,
	R8 = 8,
	R9 = 9,
	R10 = 10,
	R11 = 11,
	SIG_BLOCK = 0,
	SIG_UNBLOCK = 1,
	SIG_SETMASK = 2,
	MASK_SIZE = 8,
	SIGNALS = 64,
	EFAULT = 14,
	ENOSYS = 38,
	IORING_ENTER_EXT_ARG = 8,
};
#define CLONE_CLEAR_SIGHAND UINT64_C(0x100000000)
#define UNBLOCKABLE         (UINT64_C(1) << 8 | UINT64_C(1) << 18) /* SIGKILL, SIGSTOP */

static uint64_t address(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

/* ---- the program's memory: a thread's id names its process as well, in a fork or vfork child too --------------------------- */

static bool copy(int64_t nr, uint64_t here, uint64_t there, uint64_t n)
{
	const struct dp_iovec local = {here, n}, remote = {there, n};
	int64_t ret;
	register uint64_t r10 __asm__("r10") = address(&remote);
	register uint64_t r8 __asm__("r8") = 1;
	register uint64_t r9 __asm__("r9") = 0;

	__asm__ volatile("syscall"
	                 : "=a"(ret)
	                 : "a"(nr), "D"((uint64_t)dp_trap_tid()), "S"(&local), "d"((uint64_t)1), "r"(r10), "r"(r8), "r"(r9)
	                 : "rcx", "r11", "memory");
	return ret == (int64_t)n;
}

static bool copy_in(void *to, uint64_t from, uint64_t n)
{
	return copy(DP_SYS_PROCESS_VM_READV, address(to), from, n);
}

static bool copy_out(uint64_t to, const void *from, uint64_t n)
{
	return copy(DP_SYS_PROCESS_VM_WRITEV, address(from), to, n);
}

/* ---- who has it blocked, as far as the program knows ------------------------------------------------------------------------
 */

static uint32_t *place_at(struct dp_trap *trap, uint32_t tid, unsigned nth)
{
	return &trap->blocked[(tid + nth) % DP_TRAP_THREADS];
}

/* Where the thread is noted, or NULL. */
static uint32_t *place_of(struct dp_trap *trap, uint32_t tid)
{
	for (unsigned i = 0; i < DP_TRAP_PROBES; i++)
		if ((DP_LOAD(place_at(trap, tid, i)) & ~DP_TRAP_PENDING) == tid)
			return place_at(trap, tid, i);
	return NULL;
}

/* Threads block everything before they end, and do not come back for their place. */
static bool is_gone(uint32_t tid)
{
	return dp_syscall4(DP_SYS_TGKILL, (uint64_t)dp_syscall0(DP_SYS_GETPID), tid, 0, 0) == -DP_ESRCH;
}

static bool take(uint32_t *place, uint32_t from, uint32_t tid)
{
	return __atomic_compare_exchange_n(place, &from, tid, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* If there is no place, the program is told that SIGTRAP is not blocked. */
static void note(struct dp_trap *trap, uint32_t tid)
{
	for (unsigned i = 0; i < DP_TRAP_PROBES; i++)
		if (take(place_at(trap, tid, i), 0, tid))
			return;
	for (unsigned i = 0; i < DP_TRAP_PROBES; i++) {
		uint32_t *place = place_at(trap, tid, i);
		const uint32_t other = DP_LOAD(place);
		if (is_gone(other & ~DP_TRAP_PENDING) && take(place, other, tid))
			return;
	}
}

bool dp_trap_hold(struct dp_trap *trap, uint32_t tid)
{
	uint32_t *place = place_of(trap, tid);
	if (!place)
		return false;
	DP_STORE(place, tid | DP_TRAP_PENDING);
	return true;
}

/* What came while it was blocked comes when it no longer is. */
static void set_blocked(struct dp_trap *trap, uint32_t tid, bool on)
{
	uint32_t *place = place_of(trap, tid);
	if (on && !place)
		note(trap, tid);
	if (on || !place)
		return;
	const uint32_t was = __atomic_exchange_n(place, 0, __ATOMIC_ACQ_REL);
	if (was & DP_TRAP_PENDING)
		dp_syscall4(DP_SYS_TGKILL, (uint64_t)dp_syscall0(DP_SYS_GETPID), tid, DP_TRAP_SIGNAL, 0);
}

/* ---- the calls ---------------------------------------------------------------------------------------------------------------
 */

/* A vfork child runs in its parent's memory with actions of its own, until it executes: the parent's stay as they are. */
static bool is_vfork_child(const struct dp_trap *trap)
{
	const struct dp_agent *agent = (const struct dp_agent *)(uintptr_t)trap->agent;

	return DP_LOAD(&agent->live) == DP_LIVE && (uint32_t)dp_syscall0(DP_SYS_GETPID) != trap->pid;
}

static int64_t own_action(struct dp_trap *trap, const struct dp_trap_action *new, uint64_t old_to)
{
	const struct dp_trap_action old = trap->action;

	if (new && !is_vfork_child(trap)) {
		trap->action.mask = new->mask & ~UNBLOCKABLE;
		trap->action.flags = new->flags;
		trap->action.restorer = new->restorer;
		DP_STORE(&trap->action.handler, new->handler);
	}
	return old_to && !copy_out(old_to, &old, sizeof(old)) ? -EFAULT : 0;
}

static int64_t other_action(struct dp_trap *trap, uint64_t sig, struct dp_trap_action *new, uint64_t old_to)
{
	struct dp_trap_action old;
	const uint64_t bit = UINT64_C(1) << ((sig - 1) & (SIGNALS - 1));
	const bool was = DP_LOAD(&trap->masks) & bit, will = new &&new->mask &DP_TRAP_BIT;

	if (new)
		new->mask &= ~DP_TRAP_BIT;
	const int64_t ret = dp_syscall4(NR_RT_SIGACTION, sig, address(new), old_to ? address(&old) : 0, MASK_SIZE);
	if (ret)
		return ret;
	if (new &&will != was && !is_vfork_child(trap)) {
		if (will)
			__atomic_fetch_or(&trap->masks, bit, __ATOMIC_ACQ_REL);
		else
			__atomic_fetch_and(&trap->masks, ~bit, __ATOMIC_ACQ_REL);
	}
	if (!old_to)
		return 0;
	old.mask |= was ? DP_TRAP_BIT : 0;
	return copy_out(old_to, &old, sizeof(old)) ? 0 : -EFAULT;
}

static bool sigaction(struct dp_trap *trap, const struct dp_regs *r, int64_t *ret)
{
	const uint64_t sig = r->gpr[RDI] & 0xffffffff, act = r->gpr[RSI], old = r->gpr[RDX];
	struct dp_trap_action new;

	if (r->gpr[R10] != MASK_SIZE || !sig || sig > SIGNALS)
		return false;
	if (act && !copy_in(&new, act, sizeof(new)))
		*ret = -EFAULT;
	else if (sig == DP_TRAP_SIGNAL)
		*ret = own_action(trap, act ? &new : NULL, old);
	else
		*ret = other_action(trap, sig, act ? &new : NULL, old);
	return true;
}

static bool sigprocmask(struct dp_trap *trap, const struct dp_regs *r, int64_t *ret)
{
	const uint64_t how = r->gpr[RDI] & 0xffffffff, set = r->gpr[RSI], old_to = r->gpr[RDX];
	const uint32_t tid = dp_trap_tid();
	const bool was = place_of(trap, tid) != NULL;
	uint64_t new = 0, old = 0;

	if (r->gpr[R10] != MASK_SIZE)
		return false;
	*ret = -EFAULT;
	if (set && !copy_in(&new, set, sizeof(new)))
		return true;
	const bool named = new &DP_TRAP_BIT;
	new &= ~DP_TRAP_BIT;
	if (set && named && how == SIG_BLOCK)
		set_blocked(trap, tid, true); /* before the others: what is told of it is never behind */
	*ret = dp_syscall4(NR_RT_SIGPROCMASK, how, set ? address(&new) : 0, address(&old), sizeof(old));
	if (!*ret && set && (how == SIG_SETMASK || (how == SIG_UNBLOCK && named)))
		set_blocked(trap, tid, how == SIG_SETMASK && named);
	old |= was ? DP_TRAP_BIT : 0;
	if (!*ret && old_to && !copy_out(old_to, &old, sizeof(old)))
		*ret = -EFAULT;
	return true;
}

/*
 * Calls that wait with a mask of the moment, under which the handlers run that end the wait. Where SIGTRAP is in it, the call is
 * made here with a copy; the thread may be given up in it (DP_SYM_TRAP_CALLED). `which`: the argument that leads to the mask.
 */
static bool wait_masked(const struct dp_regs *r, uint32_t nr, unsigned which, uint64_t size, int64_t *ret)
{
	uint64_t arg[6] = {r->gpr[RDI], r->gpr[RSI], r->gpr[RDX], r->gpr[R10], r->gpr[R8], r->gpr[R9]};
	uint64_t mask;

	if (!arg[which] || size != sizeof(mask) || !copy_in(&mask, arg[which], sizeof(mask)) || !(mask & DP_TRAP_BIT))
		return false;
	mask &= ~DP_TRAP_BIT;
	arg[which] = address(&mask);
	*ret = dp_trap_call(arg, nr, r);
	return true;
}

/* The same, where the last argument leads to the mask's address and size. */
static bool wait_packed(const struct dp_regs *r, uint32_t nr, int64_t *ret)
{
	uint64_t arg[6] = {r->gpr[RDI], r->gpr[RSI], r->gpr[RDX], r->gpr[R10], r->gpr[R8], r->gpr[R9]};
	uint64_t packed[2], mask;

	if (!arg[5] || !copy_in(packed, arg[5], sizeof(packed)) || !packed[0] || packed[1] != sizeof(mask) ||
	    !copy_in(&mask, packed[0], sizeof(mask)) || !(mask & DP_TRAP_BIT))
		return false;
	mask &= ~DP_TRAP_BIT;
	packed[0] = address(&mask);
	arg[5] = address(packed);
	*ret = dp_trap_call(arg, nr, r);
	return true;
}

/* io_uring_enter with IORING_ENTER_EXT_ARG: mask, its size, time limit. */
static bool wait_uring(const struct dp_regs *r, int64_t *ret)
{
	uint64_t arg[6] = {r->gpr[RDI], r->gpr[RSI], r->gpr[RDX], r->gpr[R10], r->gpr[R8], r->gpr[R9]};
	uint64_t packed[3], mask;

	if (!(arg[3] & IORING_ENTER_EXT_ARG))
		return wait_masked(r, NR_IO_URING_ENTER, 4, arg[5], ret);
	if (!arg[4] || arg[5] != sizeof(packed) || !copy_in(packed, arg[4], sizeof(packed)) || !packed[0] ||
	    (uint32_t)packed[1] != sizeof(mask) || !copy_in(&mask, packed[0], sizeof(mask)) || !(mask & DP_TRAP_BIT))
		return false;
	mask &= ~DP_TRAP_BIT;
	packed[0] = address(&mask);
	arg[4] = address(packed);
	*ret = dp_trap_call(arg, NR_IO_URING_ENTER, r);
	return true;
}

/*
 * A child that begins with no handlers would die of the first trap; glibc's posix_spawn makes such ones. It is told what an older
 * kernel would tell it, and resets them in the child.
 */
static bool clone3(const struct dp_regs *r, int64_t *ret)
{
	uint64_t flags;

	*ret = -ENOSYS;
	return copy_in(&flags, r->gpr[RDI], sizeof(flags)) && (flags & CLONE_CLEAR_SIGHAND);
}

static bool serve(struct dp_trap *trap, const struct dp_regs *r, int64_t *ret)
{
	const uint32_t nr = (uint32_t)r->gpr[RAX];

	switch (nr) {
	case NR_RT_SIGACTION:
		return sigaction(trap, r, ret);
	case NR_RT_SIGPROCMASK:
		return sigprocmask(trap, r, ret);
	case NR_RT_SIGSUSPEND:
		return wait_masked(r, nr, 0, r->gpr[RSI], ret);
	case NR_PPOLL:
		return wait_masked(r, nr, 3, r->gpr[R8], ret);
	case NR_EPOLL_PWAIT:
	case NR_EPOLL_PWAIT2:
		return wait_masked(r, nr, 4, r->gpr[R9], ret);
	case NR_PSELECT6:
	case NR_IO_PGETEVENTS:
		return wait_packed(r, nr, ret);
	case NR_IO_URING_ENTER:
		return wait_uring(r, ret);
	case NR_CLONE3:
		return clone3(r, ret);
	default:
		return false;
	}
}

DP_EXPORT uint64_t dp_agent_trap_syscall(struct dp_regs *r);
uint64_t dp_agent_trap_syscall(struct dp_regs *r)
{
	struct dp_trap *trap = dp_trap_state();
	int64_t ret;

	if (!trap || !DP_LOAD(&trap->armed) || !serve(trap, r, &ret))
		return 0;
	r->gpr[RAX] = (uint64_t)ret;
	r->gpr[RCX] = r->rip + 2; /* as the instruction leaves them */
	r->gpr[R11] = r->rflags;
	return 1;
}
