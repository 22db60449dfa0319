/* SPDX-License-Identifier: MIT */
/* What the agent's two trap files share. */
#ifndef DP_AGENT_TRAP_AGENT_H
#define DP_AGENT_TRAP_AGENT_H

#include "agent/agent.h"
#include "agent/syscall.h"
#include "agent/trap.h"

#define DP_SYS_RT_SIGACTION      13
#define DP_SYS_GETPID            39
#define DP_SYS_RT_TGSIGQUEUEINFO 297
#define DP_SYS_PROCESS_VM_WRITEV 311

#define DP_SIG_SETMASK 2

/* ---- trap.S ---- */

struct dp_trap *dp_trap_state(void);
/* A system call with changed arguments, of a hook that may be given up in it (DP_SYM_TRAP_CALLED). */
int64_t dp_trap_call(const uint64_t arg[6], int64_t nr, const struct dp_regs *regs);

/* ---- trap.c ---- */

/* `info` and `uc` as the kernel wrote them. What to call in our place, or 0. */
uint64_t dp_trap_handle(int sig, const uint32_t *info, uint64_t *uc);

/* ---- sigmask.c ---- */

/* If the program has SIGTRAP blocked in this thread: notes that one came. */
bool dp_trap_hold(struct dp_trap *trap, uint32_t tid);

static inline uint32_t dp_trap_tid(void)
{
	return (uint32_t)dp_syscall0(DP_SYS_GETTID);
}

#endif
