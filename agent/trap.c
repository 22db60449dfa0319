/* SPDX-License-Identifier: MIT */
/*
 * SIGTRAP. First is asked whether it is ours; the table is small, and this is what a hit costs besides the kernel's part. All
 * signals are blocked while this runs, SIGTRAP among them, and there is no trap in it.
 */
#include "agent/trap_agent.h"

enum {
	SI_CODE = 2,      /* words of 32 bits in siginfo */
	SI_KERNEL = 0x80, /* what an int3 brings */
	UC_RIP = 21,      /* words of 64 bits in ucontext: flags, link, stack (3), r8..r15, di, si, bp, bx, dx, ax, cx, sp */
	UC_SIGMASK = 37,
	FRAME_RETURN = -1, /* the word before it: where the handler returns to */
};
#define ACTION_DEFAULT 0
#define ACTION_IGNORE  1
#define SA_RESETHAND   UINT64_C(0x80000000)

/* The entry for a trap at `addr`, 0 if it is none of ours. */
static uint64_t find(const struct dp_trap *trap, uint64_t addr)
{
	uint32_t low = 0, high = DP_LOAD(&trap->nsites);

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (trap->site[middle].addr < addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low < trap->nsites && trap->site[low].addr == addr ? trap->site[low].entry : 0;
}

/*
 * What the program has not asked for ends it, as without us: the default action, and the same signal once more, which stays
 * pending until the interrupted registers and mask are back.
 */
static void die(const uint32_t *info)
{
	const struct dp_trap_action none = {0};

	dp_syscall4(DP_SYS_RT_SIGACTION, DP_TRAP_SIGNAL, (uint64_t)(uintptr_t)&none, 0, sizeof(none.mask));
	dp_syscall4(DP_SYS_RT_TGSIGQUEUEINFO, (uint64_t)dp_syscall0(DP_SYS_GETPID), dp_trap_tid(), DP_TRAP_SIGNAL,
	            (uint64_t)(uintptr_t)info);
}

/* The program's handler gets the kernel's own frame; its mask is what the kernel would have set, but for SIGTRAP. */
static uint64_t pass(struct dp_trap *trap, uint64_t *uc)
{
	const struct dp_trap_action action = trap->action;
	const uint64_t mask = (uc[UC_SIGMASK] | action.mask) & ~DP_TRAP_BIT;

	if (action.flags & SA_RESETHAND)
		DP_STORE(&trap->action.handler, ACTION_DEFAULT);
	uc[FRAME_RETURN] = action.restorer;
	dp_syscall4(DP_SYS_RT_SIGPROCMASK, DP_SIG_SETMASK, (uint64_t)(uintptr_t)&mask, 0, sizeof(mask));
	return action.handler;
}

/* The program's signal: its handler's address, or 0 if there is nothing to call. */
static uint64_t foreign(struct dp_trap *trap, const uint32_t *info, uint64_t *uc)
{
	const bool forced = (int32_t)info[SI_CODE] > 0; /* by what the thread did: neither blocked nor ignored */

	if (!forced && dp_trap_hold(trap, dp_trap_tid()))
		return 0;
	if (trap->action.handler > ACTION_IGNORE)
		return pass(trap, uc);
	if (forced || trap->action.handler == ACTION_DEFAULT)
		die(info);
	return 0;
}

uint64_t dp_trap_handle(int sig, const uint32_t *info, uint64_t *uc)
{
	struct dp_trap *trap = dp_trap_state();
	const uint64_t entry = info[SI_CODE] == SI_KERNEL ? find(trap, uc[UC_RIP] - 1) : 0;

	(void)sig;
	if (!entry)
		return foreign(trap, info, uc);
	uc[UC_RIP] = entry;
	return 0;
}
