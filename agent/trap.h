/* SPDX-License-Identifier: MIT */
/*
 * Traps: what the tool and the agent share about sites that hold an int3 instead of a jump, and about the program's own use of
 * SIGTRAP meanwhile. Decision 0016 says why it is done this way.
 *
 * struct dp_trap lies in a private mapping of the group's memfd: a fork child has its own copy and goes on by it, without a tool. The
 * text's word DP_SYM_TRAP_STATE, written by the tool before anything leads there, holds its address.
 *
 * The program never has SIGTRAP blocked for the kernel, and never a handler of its own: what it asks for at a hooked system call is kept
 * here and told when it asks back.
 */
#ifndef DP_AGENT_TRAP_H
#define DP_AGENT_TRAP_H

#include "agent/abi.h"

#define DP_TRAP_SIGNAL 5
#define DP_TRAP_BIT    (UINT64_C(1) << (DP_TRAP_SIGNAL - 1))

struct dp_trap_action { /* the kernel's struct sigaction */
	uint64_t handler; /* 0: default, 1: ignore */
	uint64_t flags;
	uint64_t restorer;
	uint64_t mask;
};

struct dp_trap_site {
	uint64_t addr;  /* of the int3 */
	uint64_t entry; /* where its thread goes on */
};

#define DP_TRAP_THREADS 4096u
#define DP_TRAP_PROBES  8u /* places that a thread may have: from tid % DP_TRAP_THREADS on */
#define DP_TRAP_PENDING UINT32_C(0x80000000) /* a SIGTRAP was sent to it meanwhile */

struct dp_trap {
	uint32_t armed;  /* 0: the hooks let every call pass */
	uint32_t nsites; /* written behind `site` */
	uint64_t agent;  /* struct dp_agent: no longer live in a fork child */
	uint32_t pid;    /* whose actions these are */
	uint32_t reserved;
	uint64_t masks;  /* bit n-1: the program's sa_mask of signal n holds SIGTRAP */
	struct dp_trap_action action; /* the program's own for SIGTRAP */
	/* The tools': */
	uint64_t text, text_size; /* of the agent */
	uint64_t called;          /* DP_SYM_TRAP_CALLED */
	uint64_t scratch[8];      /* for system calls */
	uint32_t blocked[DP_TRAP_THREADS]; /* ids of threads in which the program has SIGTRAP blocked; 0: free */
	struct dp_trap_site site[];        /* ascending */
};

/* The SIGTRAP handler and its restorer; where a hooked system call goes, uint64_t (struct dp_regs *): not 0 if it was done. */
#define DP_SYM_TRAP          "dp_agent_trap"
#define DP_SYM_TRAP_RESTORER "dp_agent_trap_restorer"
#define DP_SYM_TRAP_SYSCALL  "dp_agent_trap_syscall"
/* The word that holds the address of struct dp_trap. */
#define DP_SYM_TRAP_STATE "dp_agent_trap_state"
/*
 * Behind the system call that a hook makes for a thread which waits with a mask of the moment. A thread that is stopped there with its
 * call to be restarted may as well make it anew where the program makes it: rbx holds the struct dp_regs to go back to.
 */
#define DP_SYM_TRAP_CALLED "dp_agent_trap_called"

#endif
