/* SPDX-License-Identifier: MIT */
/* Names of signals and of their codes. */
#include "pmodules/fault/fault.h"

static const struct {
	int number;
	const char *name;
} signals[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"},   {SIGILL, "SIGILL"},   {SIGFPE, "SIGFPE"},   {SIGABRT, "SIGABRT"},
               {SIGTRAP, "SIGTRAP"}, {SIGSTOP, "SIGSTOP"}, {SIGSYS, "SIGSYS"},   {SIGQUIT, "SIGQUIT"}, {SIGTERM, "SIGTERM"},
               {SIGINT, "SIGINT"},   {SIGKILL, "SIGKILL"}, {SIGTSTP, "SIGTSTP"}, {SIGUSR1, "SIGUSR1"}, {SIGUSR2, "SIGUSR2"},
               {SIGHUP, "SIGHUP"},   {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"}, {SIGXCPU, "SIGXCPU"}, {SIGXFSZ, "SIGXFSZ"}};

static const struct {
	int number, code;
	const char *reason;
} codes[] = {
        {SIGSEGV, SEGV_MAPERR, "address not mapped to object"},
        {SIGSEGV, SEGV_ACCERR, "invalid permissions for mapped object"},
        {SIGSEGV, SEGV_BNDERR, "failed address bound checks"},
        {SIGSEGV, SEGV_PKUERR, "access was denied by memory protection keys"},
        {SIGBUS, BUS_ADRALN, "invalid address alignment"},
        {SIGBUS, BUS_ADRERR, "nonexistent physical address"},
        {SIGBUS, BUS_OBJERR, "object-specific hardware error"},
        {SIGBUS, BUS_MCEERR_AR, "hardware memory error consumed on a machine check"},
        {SIGBUS, BUS_MCEERR_AO, "hardware memory error detected"},
        {SIGILL, ILL_ILLOPC, "illegal opcode"},
        {SIGILL, ILL_ILLOPN, "illegal operand"},
        {SIGILL, ILL_ILLADR, "illegal addressing mode"},
        {SIGILL, ILL_ILLTRP, "illegal trap"},
        {SIGILL, ILL_PRVOPC, "privileged opcode"},
        {SIGFPE, FPE_INTDIV, "integer divide by zero or overflow"},
        {SIGFPE, FPE_INTOVF, "integer overflow"},
        {SIGFPE, FPE_FLTDIV, "floating-point divide by zero"},
        {SIGFPE, FPE_FLTOVF, "floating-point overflow"},
        {SIGFPE, FPE_FLTUND, "floating-point underflow"},
        {SIGFPE, FPE_FLTRES, "floating-point inexact result"},
        {SIGFPE, FPE_FLTINV, "invalid floating-point operation"},
        {SIGFPE, FPE_FLTSUB, "subscript out of range"},
        {SIGTRAP, TRAP_BRKPT, "process breakpoint"},
        {SIGTRAP, TRAP_TRACE, "process trace trap"},
};

static const char *reason_of(int number, int code)
{
	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++)
		if (codes[i].number == number && codes[i].code == code)
			return codes[i].reason;
	switch (code) {
	case SI_USER:
		return "sent by kill()";
	case SI_TKILL:
		return "sent by tkill() or tgkill()";
	case SI_QUEUE:
		return "sent by sigqueue()";
	case SI_KERNEL:
		return "sent by the kernel";
	default:
		return "";
	}
}

void dp_fault_siginfo(const siginfo_t *si, struct dp_snap_siginfo *ret)
{
	*ret = (struct dp_snap_siginfo){.number = si->si_signo, .code = si->si_code, .name = "a signal"};
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		if (signals[i].number == si->si_signo)
			ret->name = signals[i].name;
	ret->reason = reason_of(si->si_signo, si->si_code);
	ret->by_kill = si->si_code == SI_USER || si->si_code == SI_TKILL || si->si_code == SI_QUEUE;
	if (ret->by_kill) {
		ret->pid = si->si_pid;
		ret->uid = (int)si->si_uid;
	}
	ret->has_address =
	        si->si_code > 0 && si->si_code != SI_KERNEL &&
	        (si->si_signo == SIGSEGV || si->si_signo == SIGBUS || si->si_signo == SIGILL || si->si_signo == SIGFPE);
	if (ret->has_address)
		ret->address = (uint64_t)(uintptr_t)si->si_addr;
}
