/* SPDX-License-Identifier: MIT */
/*
 * The system calls by which a program could change our handling of the hooked signals. Their `syscall` instructions are hooked:
 * each call is made here, with the hooked signals removed from the program's arguments and added to its results, so that it sees
 * its own settings.
 *
 * A bad pointer is reported only where the kernel would report it too. All other calls are left to the program: a hook that
 * returns 0 has changed nothing.
 */
#include "agent/trap/trap_agent.h"

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

/* ---- the program's memory: a tid names its process too, in a fork or vfork child as well ----------------------------------- */

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
	if (dp_faults_are_ours(dp_trap_state()))
		return dp_fault_copy(address(to), from, n) == n;
	return copy(DP_SYS_PROCESS_VM_READV, address(to), from, n);
}

static bool copy_out(uint64_t to, const void *from, uint64_t n)
{
	if (dp_faults_are_ours(dp_trap_state()))
		return dp_fault_copy(to, address(from), n) == n;
	return copy(DP_SYS_PROCESS_VM_WRITEV, address(from), to, n);
}

/* ---- the calls ------------------------------------------------------------------------------------------------------------ */

/*
 * Installs our handler, on the stack that the program's own would use. Each time: a tool that died while it restored the actions
 * has left this one to the program and the hooks to us.
 */
static void set_flags(unsigned sig, const struct dp_trap_action *own)
{
	const struct dp_trap_action ours = {address(dp_trap_entry), dp_trap_flags(sig, own), address(dp_trap_return), UINT64_MAX};

	dp_syscall4(NR_RT_SIGACTION, sig, address(&ours), 0, MASK_SIZE);
}

static int64_t own_action(struct dp_trap *trap, unsigned sig, const struct dp_trap_action *new, uint64_t old_to)
{
	struct dp_trap_action *own = &trap->action[sig - 1];
	const struct dp_trap_action old = *own;

	if (new && !dp_trap_is_vfork_child(trap)) {
		own->mask = new->mask & ~UNBLOCKABLE;
		own->flags = new->flags;
		own->restorer = new->restorer;
		DP_STORE(&own->handler, new->handler);
		set_flags(sig, own);
	}
	return old_to && !copy_out(old_to, &old, sizeof(old)) ? -EFAULT : 0;
}

/* The hooked signals in the program's mask for this signal's handler. */
static uint64_t noted(const struct dp_trap *trap, uint64_t bit)
{
	uint64_t mask = 0;

	for (unsigned i = 0; i < DP_TRAP_SIGNALS; i++)
		mask |= DP_LOAD(&trap->masks[i]) & bit ? UINT64_C(1) << i : 0;
	return mask;
}

static void note(struct dp_trap *trap, uint64_t bit, uint64_t mask)
{
	for (unsigned i = 0; i < DP_TRAP_SIGNALS; i++)
		if (mask >> i & 1)
			__atomic_fetch_or(&trap->masks[i], bit, __ATOMIC_ACQ_REL);
		else
			__atomic_fetch_and(&trap->masks[i], ~bit, __ATOMIC_ACQ_REL);
}

static int64_t other_action(struct dp_trap *trap, uint64_t sig, struct dp_trap_action *new, uint64_t old_to)
{
	struct dp_trap_action old;
	const uint64_t bit = UINT64_C(1) << ((sig - 1) & (SIGNALS - 1));
	const uint64_t was = noted(trap, bit), will = new ? new->mask & trap->signals : 0;

	if (new)
		new->mask &= ~trap->signals;
	const int64_t ret = dp_syscall4(NR_RT_SIGACTION, sig, address(new), old_to ? address(&old) : 0, MASK_SIZE);
	if (ret)
		return ret;
	if (new &&will != was && !dp_trap_is_vfork_child(trap))
		note(trap, bit, will);
	if (!old_to)
		return 0;
	old.mask |= was;
	return copy_out(old_to, &old, sizeof(old)) ? 0 : -EFAULT;
}

static bool is_taken(const struct dp_trap *trap, uint64_t sig)
{
	return sig < DP_TRAP_SIGNALS && trap->signals >> (sig - 1) & 1;
}

static bool sigaction(struct dp_trap *trap, const struct dp_regs *r, int64_t *ret)
{
	const uint64_t sig = r->gpr[RDI] & 0xffffffff, act = r->gpr[RSI], old = r->gpr[RDX];
	struct dp_trap_action new;

	if (r->gpr[R10] != MASK_SIZE || !sig || sig > SIGNALS)
		return false;
	if (act && !copy_in(&new, act, sizeof(new)))
		*ret = -EFAULT;
	else if (is_taken(trap, sig))
		*ret = own_action(trap, (unsigned)sig, act ? &new : NULL, old);
	else
		*ret = other_action(trap, sig, act ? &new : NULL, old);
	return true;
}

/*
 * In the program's SIGSEGV handler the kernel's mask marks SIGSEGV as blocked (DP_TRAP_IN_SEGV), and continues to unless the
 * program unblocks it: a thread's entry in `blocked` would outlive the handler.
 */
static bool is_in_segv(void)
{
	uint64_t now = 0;

	dp_syscall4(NR_RT_SIGPROCMASK, SIG_BLOCK, 0, address(&now), sizeof(now));
	return now & DP_TRAP_IN_SEGV;
}

struct change {          /* of a mask */
	uint64_t kernel; /* without the hooked signals; with the mark if it is to stay or to be removed */
	uint64_t taken;  /* to be noted */
};

static struct change change_of(const struct dp_trap *trap, uint64_t how, uint64_t set)
{
	const uint64_t segv = DP_TRAP_BIT_OF(DP_TRAP_SIGSEGV) & trap->signals;
	struct change c = {set & ~trap->signals, set & trap->signals};

	if (!segv)
		return c;
	c.kernel &= ~DP_TRAP_IN_SEGV;
	if (how == SIG_UNBLOCK ? set & segv : (set & segv) && is_in_segv()) {
		c.kernel |= DP_TRAP_IN_SEGV;
		c.taken &= how == SIG_UNBLOCK ? ~UINT64_C(0) : ~segv;
	}
	return c;
}

/* The old mask as the program must see it. */
static uint64_t shown(const struct dp_trap *trap, uint64_t kernel, uint64_t noted)
{
	const uint64_t segv = DP_TRAP_BIT_OF(DP_TRAP_SIGSEGV) & trap->signals;

	if (segv && (kernel & DP_TRAP_IN_SEGV))
		return (kernel & ~DP_TRAP_IN_SEGV) | segv | noted;
	return kernel | noted;
}

static bool sigprocmask(struct dp_trap *trap, const struct dp_regs *r, int64_t *ret)
{
	const uint64_t how = r->gpr[RDI] & 0xffffffff, set = r->gpr[RSI], old_to = r->gpr[RDX];
	const uint32_t tid = dp_trap_tid();
	const uint64_t was = dp_trap_blocked(trap, tid);
	uint64_t new = 0, old = 0;

	if (r->gpr[R10] != MASK_SIZE)
		return false;
	*ret = -EFAULT;
	if (set && !copy_in(&new, set, sizeof(new)))
		return true;
	const struct change c = change_of(trap, how, new);
	if (set && c.taken && how == SIG_BLOCK)
		dp_trap_set_blocked(trap, tid, c.taken, 0); /* before the others, so that what the program sees is never
		                                               outdated */
	*ret = dp_syscall4(NR_RT_SIGPROCMASK, how, set ? address(&c.kernel) : 0, address(&old), sizeof(old));
	if (!*ret && set && how == SIG_SETMASK)
		dp_trap_set_blocked(trap, tid, c.taken, trap->signals & ~c.taken);
	else if (!*ret && set && how == SIG_UNBLOCK)
		dp_trap_set_blocked(trap, tid, 0, c.taken);
	old = shown(trap, old, was);
	if (!*ret && old_to && !copy_out(old_to, &old, sizeof(old)))
		*ret = -EFAULT;
	return true;
}

/*
 * Calls with a temporary signal mask, under which the handlers run that interrupt the call. If it contains a hooked signal, the
 * call is made here with a copy. The tool may take the thread out of it (DP_SYM_TRAP_CALLED). `which`: the argument that points
 * to the mask.
 */
static bool wait_masked(const struct dp_trap *trap, const struct dp_regs *r, uint32_t nr, unsigned which, uint64_t size,
                        int64_t *ret)
{
	uint64_t arg[6] = {r->gpr[RDI], r->gpr[RSI], r->gpr[RDX], r->gpr[R10], r->gpr[R8], r->gpr[R9]};
	uint64_t mask;

	if (!arg[which] || size != sizeof(mask) || !copy_in(&mask, arg[which], sizeof(mask)) || !(mask & trap->signals))
		return false;
	mask &= ~trap->signals;
	arg[which] = address(&mask);
	*ret = dp_trap_call(arg, nr, r);
	return true;
}

/* The same, for calls whose last argument points to the mask's address and size. */
static bool wait_packed(const struct dp_trap *trap, const struct dp_regs *r, uint32_t nr, int64_t *ret)
{
	uint64_t arg[6] = {r->gpr[RDI], r->gpr[RSI], r->gpr[RDX], r->gpr[R10], r->gpr[R8], r->gpr[R9]};
	uint64_t packed[2], mask;

	if (!arg[5] || !copy_in(packed, arg[5], sizeof(packed)) || !packed[0] || packed[1] != sizeof(mask) ||
	    !copy_in(&mask, packed[0], sizeof(mask)) || !(mask & trap->signals))
		return false;
	mask &= ~trap->signals;
	packed[0] = address(&mask);
	arg[5] = address(packed);
	*ret = dp_trap_call(arg, nr, r);
	return true;
}

/* io_uring_enter with IORING_ENTER_EXT_ARG: mask, its size, time limit. */
static bool wait_uring(const struct dp_trap *trap, const struct dp_regs *r, int64_t *ret)
{
	uint64_t arg[6] = {r->gpr[RDI], r->gpr[RSI], r->gpr[RDX], r->gpr[R10], r->gpr[R8], r->gpr[R9]};
	uint64_t packed[3], mask;

	if (!(arg[3] & IORING_ENTER_EXT_ARG))
		return wait_masked(trap, r, NR_IO_URING_ENTER, 4, arg[5], ret);
	if (!arg[4] || arg[5] != sizeof(packed) || !copy_in(packed, arg[4], sizeof(packed)) || !packed[0] ||
	    (uint32_t)packed[1] != sizeof(mask) || !copy_in(&mask, packed[0], sizeof(mask)) || !(mask & trap->signals))
		return false;
	mask &= ~trap->signals;
	packed[0] = address(&mask);
	arg[4] = address(packed);
	*ret = dp_trap_call(arg, NR_IO_URING_ENTER, r);
	return true;
}

/*
 * A child that starts without handlers would die of the first trap; glibc's posix_spawn makes such children. It gets the answer
 * of an older kernel, and then resets the handlers in the child.
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
		return wait_masked(trap, r, nr, 0, r->gpr[RSI], ret);
	case NR_PPOLL:
		return wait_masked(trap, r, nr, 3, r->gpr[R8], ret);
	case NR_EPOLL_PWAIT:
	case NR_EPOLL_PWAIT2:
		return wait_masked(trap, r, nr, 4, r->gpr[R9], ret);
	case NR_PSELECT6:
	case NR_IO_PGETEVENTS:
		return wait_packed(trap, r, nr, ret);
	case NR_IO_URING_ENTER:
		return wait_uring(trap, r, ret);
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
