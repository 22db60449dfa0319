/* SPDX-License-Identifier: MIT */
/*
 * Per-thread mask of the hooked signals, as the program sees it. A thread's place is written by that thread (its signal handlers
 * included), and by a tool that holds it.
 */
#include "agent/trap/trap_agent.h"

#define BITS UINT64_C(0xffff)
enum { NR_GETPPID = 110, NR_KCMP = 312, KCMP_VM = 1 };

/*
 * A vfork child runs in its parent's memory with signal actions of its own, until it calls exec: the parent's must not change. A
 * fork child, whose agent is no longer live, has a copy of the state, and may make vfork children that share it. Only the kernel
 * knows which of the two the caller is. If it does not tell, a fork child is more likely.
 */
static bool shares_memory(const struct dp_trap *trap, uint64_t pid)
{
	const struct dp_agent *agent = (const struct dp_agent *)(uintptr_t)trap->agent;

	return DP_LOAD(&agent->live) == DP_LIVE || !dp_syscall4(NR_KCMP, pid, (uint64_t)dp_syscall0(NR_GETPPID), KCMP_VM, 0);
}

/* Drops the entries of its parent's threads. Some have ended, and the child may have the tid of one of those. */
static void forget_others(struct dp_trap *trap)
{
	for (unsigned i = 0; i < DP_TRAP_THREADS; i++)
		if (DP_LOAD(&trap->blocked[i]))
			DP_STORE(&trap->blocked[i], 0);
}

bool dp_trap_is_vfork_child(struct dp_trap *trap)
{
	const uint64_t pid = (uint64_t)dp_syscall0(DP_SYS_GETPID);

	if ((uint32_t)pid == DP_LOAD(&trap->pid))
		return false;
	if (shares_memory(trap, pid))
		return true;
	forget_others(trap);
	DP_STORE(&trap->pid, (uint32_t)pid);
	return false;
}

static uint64_t *place_at(struct dp_trap *trap, uint32_t tid, unsigned nth)
{
	return &trap->blocked[(tid + nth) % DP_TRAP_THREADS];
}

/* The thread's place, or NULL. */
static uint64_t *place_of(struct dp_trap *trap, uint32_t tid)
{
	for (unsigned i = 0; i < DP_TRAP_PROBES; i++)
		if ((uint32_t)DP_LOAD(place_at(trap, tid, i)) == tid)
			return place_at(trap, tid, i);
	return NULL;
}

/* Threads block all signals before they end, and leave their places behind. */
static bool is_gone(uint32_t tid)
{
	return dp_syscall4(DP_SYS_TGKILL, (uint64_t)dp_syscall0(DP_SYS_GETPID), tid, 0, 0) == -DP_ESRCH;
}

/* If there is no place, the program sees the signals as not blocked. */
static void note(struct dp_trap *trap, uint32_t tid, uint64_t word)
{
	for (unsigned i = 0; i < DP_TRAP_PROBES; i++)
		if (dp_cmpxchg(place_at(trap, tid, i), 0, word))
			return;
	for (unsigned i = 0; i < DP_TRAP_PROBES; i++) {
		uint64_t *place = place_at(trap, tid, i);
		const uint64_t other = DP_LOAD(place);
		if (is_gone((uint32_t)other) && dp_cmpxchg(place, other, word))
			return;
	}
}

uint64_t dp_trap_blocked(struct dp_trap *trap, uint32_t tid)
{
	dp_trap_is_vfork_child(trap);
	const uint64_t *place = place_of(trap, tid);

	return place ? DP_LOAD(place) >> DP_TRAP_BLOCKED & BITS : 0;
}

bool dp_trap_hold(struct dp_trap *trap, uint32_t tid, unsigned sig)
{
	dp_trap_is_vfork_child(trap);
	uint64_t *place = place_of(trap, tid);
	const uint64_t bit = DP_TRAP_BIT_OF(sig), word = place ? DP_LOAD(place) : 0;

	/* All signals are blocked in the handler: nothing else writes to this place. */
	if (!(word >> DP_TRAP_BLOCKED & bit))
		return false;
	DP_STORE(place, word | bit << DP_TRAP_PENDING);
	return true;
}

static void send(uint32_t tid, uint64_t bits)
{
	for (unsigned sig = 1; sig < DP_TRAP_SIGNALS; sig++)
		if (bits & DP_TRAP_BIT_OF(sig))
			dp_syscall4(DP_SYS_TGKILL, (uint64_t)dp_syscall0(DP_SYS_GETPID), tid, sig, 0);
}

void dp_trap_set_blocked(struct dp_trap *trap, uint32_t tid, uint64_t on, uint64_t off)
{
	uint64_t *place = place_of(trap, tid);
	uint64_t was, blocked, pending, word;

	if (!place) {
		if (on & ~off)
			note(trap, tid, tid | (on & ~off) << DP_TRAP_BLOCKED);
		return;
	}
	do {
		was = DP_LOAD(place);
		pending = was >> DP_TRAP_PENDING;
		blocked = ((was >> DP_TRAP_BLOCKED & BITS) | on) & ~off;
		word = blocked ? tid | blocked << DP_TRAP_BLOCKED | (pending & blocked) << DP_TRAP_PENDING : 0;
	} while (!dp_cmpxchg(place, was, word));
	send(tid, pending & ~blocked);
}
