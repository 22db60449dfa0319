/* SPDX-License-Identifier: MIT */
/* What the agent's trap files share. */
#ifndef DP_AGENT_TRAP_AGENT_H
#define DP_AGENT_TRAP_AGENT_H

#include "agent/agent.h"
#include "agent/syscall.h"
#include "agent/trap/trap.h"

#define DP_SYS_RT_SIGACTION      13
#define DP_SYS_RT_TGSIGQUEUEINFO 297
#define DP_SYS_PROCESS_VM_WRITEV 311

#define DP_SIG_SETMASK 2

/* ---- trap.S ---- */

struct dp_trap *dp_trap_state(void);
#define DP_LOCAL __attribute__((visibility("hidden")))
extern DP_LOCAL const uint8_t dp_trap_entry[], dp_trap_return[]; /* DP_SYM_TRAP, DP_SYM_TRAP_RESTORER */
/* A system call with changed arguments, of a hook that may be given up in it (DP_SYM_TRAP_CALLED). */
int64_t dp_trap_call(const uint64_t arg[6], int64_t nr, const struct dp_regs *regs);

/* ---- trap.c ---- */

/* `info` and `uc` as the kernel wrote them. What to call in our place, or 0. */
uint64_t dp_trap_handle(int sig, uint32_t *info, uint64_t *uc);

/* ---- fault.S ---- */

/* Copies up to n bytes; how many it were, where the rest cannot be read or written. Only while the handler stands. */
DP_LOCAL uint64_t dp_fault_copy(uint64_t dst, uint64_t src, uint64_t n);
extern DP_LOCAL const uint8_t dp_fault_short[];

/* ---- blocked.c ---- */

/* Is the caller a process that shares the memory of the one whose state this is? A fork child makes the state its own. */
bool dp_trap_is_vfork_child(struct dp_trap *trap);
/* The signals that the program has blocked in this thread, of those that are taken. */
uint64_t dp_trap_blocked(struct dp_trap *trap, uint32_t tid);
/* If it is blocked: notes that one came. */
bool dp_trap_hold(struct dp_trap *trap, uint32_t tid, unsigned sig);
/* What came while it was blocked comes when it no longer is. */
void dp_trap_set_blocked(struct dp_trap *trap, uint32_t tid, uint64_t on, uint64_t off);

/* Does it stand in this process? */
static inline bool dp_faults_are_ours(const struct dp_trap *trap)
{
	return trap && DP_LOAD(&trap->armed) && (trap->signals & DP_FAULT_BITS) == DP_FAULT_BITS;
}

static inline uint32_t dp_trap_tid(void)
{
	return (uint32_t)dp_syscall0(DP_SYS_GETTID);
}

#endif
