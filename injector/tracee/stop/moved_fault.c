/* SPDX-License-Identifier: MIT */
/*
 * A thread may stop between a fault and the fault's signal: at the signal's delivery, or, while the signal is still queued, at
 * our interrupt. SIGFPE, SIGILL, SIGTRAP and some SIGSEGV then carry the pc as si_addr (sigaction(2)). When a thread is moved
 * from a stub to the program, that address must move as well. Only a signal that has been taken from the queue can be changed
 * (PTRACE_SETSIGINFO); for a queued one the caller waits.
 */
#include "injector/tracee/stop/moved_fault.h"

#include <signal.h>
#include <sys/ptrace.h>

#define SOME 8

static bool is_fault_at(const siginfo_t *si, uint64_t pc)
{
	switch (si->si_signo) {
	case SIGFPE:
	case SIGILL:
	case SIGSEGV:
	case SIGBUS:
	case SIGTRAP:
		return si->si_code > 0 && (uint64_t)(uintptr_t)si->si_addr == pc;
	default:
		return false;
	}
}

bool dp_fault_waits(const struct dp_held *h)
{
	siginfo_t si[SOME];
	struct __ptrace_peeksiginfo_args args = {.nr = SOME};
	for (long n; (n = ptrace(PTRACE_PEEKSIGINFO, h->tid, &args, si)) > 0; args.off += (uint64_t)n)
		for (long i = 0; i < n; i++)
			if (is_fault_at(&si[i], h->regs.rip))
				return true;
	return false;
}

void dp_fault_move(const struct dp_held *h, uint64_t to)
{
	siginfo_t si;
	if (!h->pending_signal || ptrace(PTRACE_GETSIGINFO, h->tid, NULL, &si) || !is_fault_at(&si, h->regs.rip))
		return;
	si.si_addr = (void *)(uintptr_t)to; /* NOLINT(performance-no-int-to-ptr): an address of the target */
	ptrace(PTRACE_SETSIGINFO, h->tid, NULL, &si);
}
