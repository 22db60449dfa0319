/* SPDX-License-Identifier: MIT */
/*
 * walker: samples itself. A profiling timer's handler, at 1 kHz, walks the interrupted stack with backtrace() of libc or
 * (HAVE_LIBUNWIND) with libunwind; another handler does so on an alternate stack. At SIGTERM it prints the number of walks, and
 * how many of them reached work().
 */
#include "target.h"

#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/time.h>
#include <ucontext.h>
#ifdef HAVE_LIBUNWIND
#define UNW_LOCAL_ONLY
#include <libunwind.h>
#endif

#define DEPTH 64

static long bad;
static volatile long walks, complete;
static char alternate[64u << 10];
static uintptr_t work_start, work_end;

TARGET_PROBED unsigned leaf(unsigned a)
{
	for (unsigned i = 0; i < 50; i++)
		a = a * 31 + (a >> 3);
	return a;
}

TARGET_PROBED unsigned inner(unsigned a)
{
	return leaf(a) + leaf(a + 1);
}

TARGET_PROBED unsigned outer(unsigned a)
{
	return inner(a) ^ inner(a + 2);
}

static unsigned leaf_expected(unsigned a)
{
	for (unsigned i = 0; i < 50; i++)
		a = a * 31 + (a >> 3);
	return a;
}

static int walk(void **pc)
{
#ifdef HAVE_LIBUNWIND
	return unw_backtrace(pc, DEPTH);
#else
	return backtrace(pc, DEPTH);
#endif
}

static void on_sample(int sig)
{
	const int saved = errno;
	void *pc[DEPTH];
	const int n = walk(pc);
	(void)sig;
	walks++;
	for (int i = 0; i < n; i++)
		if ((uintptr_t)pc[i] >= work_start && (uintptr_t)pc[i] < work_end) {
			complete++;
			break;
		}
	errno = saved;
}

/* Prints the address, its origin and the mappings: only one walk in many thousands fails. */
static void on_crash(int sig, siginfo_t *si, void *context)
{
	const greg_t *r = ((const ucontext_t *)context)->uc_mcontext.gregs;
	char text[4096];
	const int maps = open("/proc/self/maps", O_RDONLY);
	ssize_t n = snprintf(text, sizeof(text), "signal %d at %p, rip %llx rsp %llx rbp %llx\n", sig, si->si_addr,
	                     (unsigned long long)r[REG_RIP], (unsigned long long)r[REG_RSP], (unsigned long long)r[REG_RBP]);
	while (n > 0 && write(2, text, (size_t)n) == n)
		n = read(maps, text, sizeof(text));
	signal(sig, SIG_DFL);
	raise(sig);
}

static __attribute__((noinline, used, section(".text.walker_work"))) long work(void)
{
	for (unsigned i = 0; !target_stop; i++) {
		errno = 4242;
		const unsigned want = (leaf_expected(i) + leaf_expected(i + 1)) ^ (leaf_expected(i + 2) + leaf_expected(i + 3));
		if (outer(i) != want || errno != 4242)
			bad++;
	}
	return bad;
}

int main(void)
{
	const stack_t other = {.ss_sp = alternate, .ss_size = sizeof(alternate)};
	struct sigaction profile = {.sa_handler = on_sample, .sa_flags = SA_RESTART};
	struct sigaction alarm_action = {.sa_handler = on_sample, .sa_flags = SA_RESTART | SA_ONSTACK};
	struct sigaction crash = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	struct itimerval every = {{0, 1000}, {0, 1000}};
	void *warm[DEPTH];

	work_start = (uintptr_t)work;
	work_end = work_start + 512;
	walk(warm); /* the first walk may load libraries */
	sigemptyset(&profile.sa_mask);
	sigaddset(&profile.sa_mask, SIGALRM);
	alarm_action.sa_mask = profile.sa_mask;
	sigaddset(&alarm_action.sa_mask, SIGPROF);
	target_stop_on_term();
	sigaltstack(&other, NULL);
	sigaction(SIGSEGV, &crash, NULL);
	sigaction(SIGPROF, &profile, NULL);
	sigaction(SIGALRM, &alarm_action, NULL);
	setitimer(ITIMER_PROF, &every, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	target_ready();
	work();
	setitimer(ITIMER_PROF, &(struct itimerval){0}, NULL);
	setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
	printf("RESULT %s\n", bad || !walks ? "BAD" : "OK");
	fprintf(stderr, "walks %ld complete %ld\n", walks, complete);
	return bad != 0;
}
