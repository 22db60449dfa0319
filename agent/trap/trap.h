/* SPDX-License-Identifier: MIT */
/*
 * Traps and faults: shared by the tool and the agent. Covers sites with an int3 instead of a jump, loads that may fault, and the
 * program's own use of these signals meanwhile. Decision 0016 gives the reasons.
 *
 * struct dp_trap is in a private mapping of the group's memfd: a fork child has its own copy and works with it without a tool.
 * Its address is in the text's word DP_SYM_TRAP_STATE, which the tool writes before any jump leads there.
 *
 * The program's blocking of the hooked signals (`signals`) and its handlers for them never reach the kernel: what it sets at a
 * hooked system call is kept here and returned when it asks.
 */
#ifndef DP_AGENT_TRAP_TRAP_H
#define DP_AGENT_TRAP_TRAP_H

#include "agent/abi.h"

enum { /* the signals that may be hooked: all below 16 */
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
#define DP_SHOWN_BITS       (DP_TRAP_BIT_OF(DP_TRAP_SIGILL) | DP_TRAP_BIT_OF(DP_TRAP_SIGFPE))  /* whose pc is corrected too */
/*
 * Blocked for the kernel while the program's SIGSEGV handler runs, in which SIGSEGV is blocked: the kernel saves this mark in its
 * frames and removes it when they end. Blocking this signal does no harm: the C library reserves it for itself and may delay it.
 */
#define DP_TRAP_IN_SEGV DP_TRAP_BIT_OF(33)

/*
 * Value of uc_link, which the kernel leaves 0 and does not read, in frames that send their thread into a stub. Remains of such a
 * frame on a stack may outlive the stub and the agent; the value shows that no thread will return through it.
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
#define DP_TRAP_PROBES  8u /* possible places of a thread: from tid % DP_TRAP_THREADS on */
/*
 * A place: tid, a bit (signal - 1) for each signal that the program has blocked in it, and one for each of these that is pending.
 */
#define DP_TRAP_BLOCKED 32
#define DP_TRAP_PENDING 48

struct dp_trap {
	uint32_t armed;                                /* 0: the hooks change no call */
	uint32_t pid;                                  /* of the process whose actions these are */
	uint64_t agent;                                /* struct dp_agent; not live in a fork child */
	uint64_t signals;                              /* mask of the hooked signals */
	uint64_t masks[DP_TRAP_SIGNALS];               /* [s - 1] bit n-1: the program's sa_mask of signal n contains signal s */
	struct dp_trap_action action[DP_TRAP_SIGNALS]; /* [s - 1]: the program's own */
	/* Each ascending: int3s and where their threads continue; loads that may fault; places in stubs and the original ones. */
	uint64_t sites, fixups, pairs; /* struct dp_fixup[] */
	uint32_t nsites, nfixups, npairs, reserved;
	/* For the tools: */
	uint64_t text, text_size;          /* of the agent */
	uint64_t called;                   /* DP_SYM_TRAP_CALLED */
	uint64_t scratch[8];               /* for system calls */
	uint64_t blocked[DP_TRAP_THREADS]; /* 0: free */
	struct dp_fixup table[];           /* the arrays above */
};

/*
 * Flags of our action in place of the program's: it runs on the stack of the program's own handler, and restarts calls like that
 * one. A signal that the program ignores would not have interrupted them.
 */
static inline uint64_t dp_trap_flags(unsigned sig, const struct dp_trap_action *own)
{
	const uint64_t stack = sig == DP_TRAP_SIGTRAP || own->handler <= 1 ? 0 : own->flags & DP_SA_ONSTACK;
	const uint64_t restart = own->handler <= 1 ? DP_SA_RESTART : own->flags & DP_SA_RESTART;

	return DP_SA_SIGINFO | DP_SA_RESTORER | stack | restart;
}

/* The handler and its restorer; the function for a hooked system call, uint64_t (struct dp_regs *): not 0 if it made the call. */
#define DP_SYM_TRAP          "dp_agent_trap"
#define DP_SYM_TRAP_RESTORER "dp_agent_trap_restorer"
#define DP_SYM_TRAP_SYSCALL  "dp_agent_trap_syscall"
/* The word with the address of struct dp_trap. */
#define DP_SYM_TRAP_STATE "dp_agent_trap_state"
/*
 * After the system call that a hook makes for a thread with a temporary signal mask. A thread that is stopped here with a call to
 * be restarted may instead repeat it at the program's own instruction: rbx points to the struct dp_regs to go back to.
 */
#define DP_SYM_TRAP_CALLED "dp_agent_trap_called"

#endif
