/* SPDX-License-Identifier: MIT */
/*
 * Handles the hooked signals. First checks whether a signal is ours: our int3, or a load that may fault. A signal raised by a
 * program's instruction that was moved to a stub is reported to the program at the original address. All signals are blocked
 * while this runs, and it neither traps nor faults.
 */
#include "agent/trap/trap_agent.h"

enum {
	SI_CODE = 2, /* words of 32 bits in siginfo */
	SI_ADDR = 4,
	SI_KERNEL = 0x80, /* si_code of an int3 */
	UC_LINK = 1,
	UC_RIP = 21, /* words of 64 bits in ucontext: flags, link, stack (3), r8..r15, di, si, bp, bx, dx, ax, cx, sp */
	UC_SIGMASK = 37,
	FRAME_RETURN = -1, /* the word before it: the handler's return address */
};
#define ACTION_DEFAULT 0
#define ACTION_IGNORE  1

/* Where a thread at `pc` continues, 0 if not in the table. */
static uint64_t find(uint64_t table, uint32_t n, uint64_t pc)
{
	const struct dp_fixup *at = (const struct dp_fixup *)(uintptr_t)table;
	uint32_t low = 0, high = n;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (at[middle].pc < pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low < n && at[low].pc == pc ? at[low].to : 0;
}

static uint64_t find_load(const struct dp_trap *trap, uint64_t pc)
{
	if (pc >= (uint64_t)(uintptr_t)dp_fault_copy && pc < (uint64_t)(uintptr_t)dp_fault_short)
		return (uint64_t)(uintptr_t)dp_fault_short;
	return find(trap->fixups, trap->nfixups, pc);
}

/* An int3 has si_code SI_KERNEL and the pc after it. */
static uint64_t find_ours(const struct dp_trap *trap, unsigned sig, int32_t code, uint64_t pc)
{
	if (sig == DP_TRAP_SIGTRAP)
		return code == SI_KERNEL ? find(trap->sites, trap->nsites, pc - 1) : 0;
	if (code <= 0 || !(DP_TRAP_BIT_OF(sig) & DP_FAULT_BITS))
		return 0;
	return find_load(trap, pc);
}

/*
 * A signal that the program does not handle kills it, as without us: the default action, and the same signal once more, which
 * stays pending until the interrupted registers and mask are back.
 */
static void die(unsigned sig, const uint32_t *info)
{
	const struct dp_trap_action none = {0};

	dp_syscall4(DP_SYS_RT_SIGACTION, sig, (uint64_t)(uintptr_t)&none, 0, sizeof(none.mask));
	dp_syscall4(DP_SYS_RT_TGSIGQUEUEINFO, (uint64_t)dp_syscall0(DP_SYS_GETPID), dp_trap_tid(), sig,
	            (uint64_t)(uintptr_t)info);
}

/* The program's handler gets the kernel's own frame; its mask is what the kernel would have set, without the hooked signals. */
static uint64_t pass(struct dp_trap *trap, unsigned sig, uint64_t *uc)
{
	struct dp_trap_action *own = &trap->action[sig - 1];
	const struct dp_trap_action action = *own;
	const bool again = action.flags & DP_SA_NODEFER;
	const uint64_t mark = sig == DP_TRAP_SIGSEGV && !again ? DP_TRAP_IN_SEGV : 0;
	const uint64_t mask = ((uc[UC_SIGMASK] | action.mask) & ~trap->signals) | mark;

	if (action.flags & DP_SA_RESET)
		DP_STORE(&own->handler, ACTION_DEFAULT);
	uc[FRAME_RETURN] = action.restorer;
	dp_syscall4(DP_SYS_RT_SIGPROCMASK, DP_SIG_SETMASK, (uint64_t)(uintptr_t)&mask, 0, sizeof(mask));
	return action.handler;
}

static bool is_blocked(struct dp_trap *trap, unsigned sig, const uint64_t *uc)
{
	if (sig == DP_TRAP_SIGSEGV && (uc[UC_SIGMASK] & DP_TRAP_IN_SEGV))
		return true;
	return dp_trap_blocked(trap, dp_trap_tid()) & DP_TRAP_BIT_OF(sig);
}

/* A signal for the program: its handler's address, or 0 if there is nothing to call. */
static uint64_t foreign(struct dp_trap *trap, unsigned sig, const uint32_t *info, uint64_t *uc)
{
	const uint64_t handler = DP_LOAD(&trap->action[sig - 1].handler);
	const bool forced = (int32_t)info[SI_CODE] > 0; /* raised by the thread's own instruction: neither blocked nor ignored */

	if (!forced && dp_trap_hold(trap, dp_trap_tid(), sig))
		return 0;
	if (handler > ACTION_IGNORE && !(forced && is_blocked(trap, sig, uc)))
		return pass(trap, sig, uc);
	if (forced || handler == ACTION_DEFAULT)
		die(sig, info);
	return 0;
}

/* For a program's instruction in a stub: reports the original pc and address. */
static void show_original(const struct dp_trap *trap, uint32_t *info, uint64_t *uc)
{
	const uint64_t pc = uc[UC_RIP], to = find(trap->pairs, trap->npairs, pc);
	uint64_t *addr = (uint64_t *)(void *)&info[SI_ADDR];

	if (!to)
		return;
	uc[UC_RIP] = to;
	if (*addr == pc)
		*addr = to;
}

uint64_t dp_trap_handle(int sig, uint32_t *info, uint64_t *uc)
{
	struct dp_trap *trap = dp_trap_state();
	const int32_t code = (int32_t)info[SI_CODE];
	const uint64_t to = find_ours(trap, (unsigned)sig, code, uc[UC_RIP]);

	if (to) {
		uc[UC_RIP] = to;
		uc[UC_LINK] = DP_FRAME_OVER;
		return 0;
	}
	if (code > 0)
		show_original(trap, info, uc);
	return foreign(trap, (unsigned)sig, info, uc);
}
