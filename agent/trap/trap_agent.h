/* SPDX-License-Identifier: MIT */
/* Shared by the agent's trap files. */
#ifndef DP_AGENT_TRAP_TRAP_AGENT_H
#define DP_AGENT_TRAP_TRAP_AGENT_H

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
/* Makes a system call with changed arguments, for a hook; the tool may take the thread out of it (DP_SYM_TRAP_CALLED). */
int64_t dp_trap_call(const uint64_t arg[6], int64_t nr, const struct dp_regs *regs);

/* ---- trap.c ---- */

/* `info` and `uc` are the kernel's. Returns the handler to call instead of us, or 0. */
uint64_t dp_trap_handle(int sig, uint32_t *info, uint64_t *uc);

/* ---- fault.S ---- */

/* Copies up to n bytes; returns how many, fewer if the rest is not accessible. Only while the fault handler is installed. */
DP_LOCAL uint64_t dp_fault_copy(uint64_t dst, uint64_t src, uint64_t n);
extern DP_LOCAL const uint8_t dp_fault_short[];

/* ---- blocked.c ---- */

/* Whether the caller shares the memory of the process whose state this is. In a fork child, makes the state the child's own. */
bool dp_trap_is_vfork_child(struct dp_trap *trap);
/* The hooked signals that the program has blocked in this thread. */
uint64_t dp_trap_blocked(struct dp_trap *trap, uint32_t tid);
/* If the signal is blocked, marks it pending and returns true. */
bool dp_trap_hold(struct dp_trap *trap, uint32_t tid, unsigned sig);
/* Pending signals are sent when they are unblocked. */
void dp_trap_set_blocked(struct dp_trap *trap, uint32_t tid, uint64_t on, uint64_t off);

/* Whether the fault handler is installed in this process. */
static inline bool dp_faults_are_ours(const struct dp_trap *trap)
{
	return trap && DP_LOAD(&trap->armed) && (trap->signals & DP_FAULT_BITS) == DP_FAULT_BITS;
}

static inline uint32_t dp_trap_tid(void)
{
	return (uint32_t)dp_syscall0(DP_SYS_GETTID);
}

#endif
