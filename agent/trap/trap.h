/* SPDX-License-Identifier: MIT */
/*
 * Traps and faults: what the tool and the agent share about sites that hold an int3 instead of a jump, about loads that may
 * fault, and about the program's own use of the signals meanwhile. Decision 0016 says why it is done this way.
 *
 * struct dp_trap lies in a private mapping of the group's memfd: a fork child has its own copy and goes on by it, without a tool.
 * The text's word DP_SYM_TRAP_STATE, written by the tool before anything leads there, holds its address.
 *
 * The program never has the signals that are taken (`signals`) blocked for the kernel, and never a handler of its own: what it
 * asks for at a hooked system call is kept here and told when it asks back.
 */
#ifndef DP_AGENT_TRAP_H
#define DP_AGENT_TRAP_H

#include "agent/abi.h"

enum { /* the signals that may be taken: all below 16 */
       DP_TRAP_SIGILL = 4,
       DP_TRAP_SIGTRAP = 5,
       DP_TRAP_SIGBUS = 7,
       DP_TRAP_SIGFPE = 8,
       DP_TRAP_SIGSEGV = 11,
       DP_TRAP_SIGNALS = 16,
};
#define DP_TRAP_BIT_OF(sig) (UINT64_C(1) << ((sig)-1))
#define DP_TRAP_BIT         DP_TRAP_BIT_OF(DP_TRAP_SIGTRAP)
#define DP_FAULT_BITS       (DP_TRAP_BIT_OF(DP_TRAP_SIGSEGV) | DP_TRAP_BIT_OF(DP_TRAP_SIGBUS)) /* what a load may raise */
#define DP_SHOWN_BITS       (DP_TRAP_BIT_OF(DP_TRAP_SIGILL) | DP_TRAP_BIT_OF(DP_TRAP_SIGFPE))  /* whose pc is put right as well */
/*
 * Blocked for the kernel while the program's SIGSEGV handler runs, in which it has SIGSEGV blocked: the kernel keeps this mark in
 * its frames and takes it away at their end. Nobody misses it: the number is one that the C library keeps to itself and delays at
 * will.
 */
#define DP_TRAP_IN_SEGV DP_TRAP_BIT_OF(33)

/*
 * The word uc_link, which the kernel leaves 0 and does not read, of frames that send their thread into a stub. What is left of
 * such a frame on a stack may long outlive the stub and the agent; by this it is known that nobody will return through it.
 */
#define DP_FRAME_OVER UINT64_C(0xd19b0ba7f2a3e0fe)

struct dp_trap_action {   /* the kernel's struct sigaction */
	uint64_t handler; /* 0: default, 1: ignore */
	uint64_t flags;
	uint64_t restorer;
	uint64_t mask;
};
#define DP_SA_SIGINFO  UINT64_C(4)
#define DP_SA_RESTORER UINT64_C(0x04000000)
#define DP_SA_ONSTACK  UINT64_C(0x08000000)
#define DP_SA_RESTART  UINT64_C(0x10000000)
#define DP_SA_NODEFER  UINT64_C(0x40000000)
#define DP_SA_RESET    UINT64_C(0x80000000)

#define DP_TRAP_THREADS 4096u
#define DP_TRAP_PROBES  8u /* places that a thread may have: from tid % DP_TRAP_THREADS on */
/* A place: the thread's id, the bits (signal - 1) that the program has blocked in it, and of those the ones that were sent
 * meanwhile. */
#define DP_TRAP_BLOCKED 32
#define DP_TRAP_PENDING 48

struct dp_trap {
	uint32_t armed;                                /* 0: the hooks let every call pass */
	uint32_t pid;                                  /* whose actions these are */
	uint64_t agent;                                /* struct dp_agent: no longer live in a fork child */
	uint64_t signals;                              /* that are taken, as a mask */
	uint64_t masks[DP_TRAP_SIGNALS];               /* [s - 1] bit n-1: the program's sa_mask of signal n holds signal s */
	struct dp_trap_action action[DP_TRAP_SIGNALS]; /* [s - 1]: the program's own */
	/* Each ascending: addresses of int3s and where their threads go on; loads that may fault; places in stubs, and equal ones
	 * in the program. */
	uint64_t sites, fixups, pairs; /* struct dp_fixup[] */
	uint32_t nsites, nfixups, npairs, reserved;
	/* The tools': */
	uint64_t text, text_size;          /* of the agent */
	uint64_t called;                   /* DP_SYM_TRAP_CALLED */
	uint64_t scratch[8];               /* for system calls */
	uint64_t blocked[DP_TRAP_THREADS]; /* 0: free */
	struct dp_fixup table[];           /* what the addresses above lead to */
};

/*
 * What the kernel is given in place of the program's action: it runs where the program's own handler would, and calls are
 * restarted behind it as they would be. One that the program ignores would not have interrupted them.
 */
static inline uint64_t dp_trap_flags(unsigned sig, const struct dp_trap_action *own)
{
	const uint64_t stack = sig == DP_TRAP_SIGTRAP || own->handler <= 1 ? 0 : own->flags & DP_SA_ONSTACK;
	const uint64_t restart = own->handler <= 1 ? DP_SA_RESTART : own->flags & DP_SA_RESTART;

	return DP_SA_SIGINFO | DP_SA_RESTORER | stack | restart;
}

/* The handler and its restorer; where a hooked system call goes, uint64_t (struct dp_regs *): not 0 if it was done. */
#define DP_SYM_TRAP          "dp_agent_trap"
#define DP_SYM_TRAP_RESTORER "dp_agent_trap_restorer"
#define DP_SYM_TRAP_SYSCALL  "dp_agent_trap_syscall"
/* The word that holds the address of struct dp_trap. */
#define DP_SYM_TRAP_STATE "dp_agent_trap_state"
/*
 * Behind the system call that a hook makes for a thread which waits with a mask of the moment. A thread that is stopped there
 * with its call to be restarted may as well make it anew where the program makes it: rbx holds the struct dp_regs to go back to.
 */
#define DP_SYM_TRAP_CALLED "dp_agent_trap_called"

#endif
