/* SPDX-License-Identifier: MIT */
/*
 * dispatched HOW [LATE]: two threads. The system calls of the second are dispatched to a handler (Syscall User Dispatch), as in
 * Wine. The handler counts them; an unexpected call is an error. HOW 0: a byte says whether calls are dispatched, and mostly they
 * are; 1: the same, but calls from libc never are. With LATE, dispatching begins at SIGUSR1.
 */
#include "target.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif
#define FOREIGN 0x7777 /* a call number that only the handler knows */
#define MADE    0
#define GIVEN   1

static _Atomic long wrong, foreign;
static volatile char dispatch = MADE;
static volatile sig_atomic_t late, refused;
static long how;

TARGET_PROBED unsigned foo(unsigned a)
{
	return a * 3 + 1;
}

/* The handler's own calls are not dispatched until it returns; then the thread's are again. */
static void on_sys(int sig, siginfo_t *info, void *context)
{
	dispatch = MADE;
	foreign++;
	wrong += sig != SIGSYS || info->si_syscall != FOREIGN;
	(void)context;
}

static void on_usr1(int sig)
{
	(void)sig;
	late = 0;
}

static bool find_libc(unsigned long *start, unsigned long *n)
{
	char line[512];
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long from, to;
	bool found = false;
	while (f && !found && fgets(line, sizeof(line), f)) {
		found = sscanf(line, "%lx-%lx", &from, &to) == 2 && strstr(line, " r-xp ") && strstr(line, "/libc.so");
		*start = from;
		*n = to - from;
	}
	if (f)
		fclose(f);
	return found;
}

static long raw(long nr)
{
	long ret;
	__asm__ volatile("syscall" : "=a"(ret) : "a"(nr) : "rcx", "r11", "memory");
	return ret;
}

static void *foreign_thread(void *arg)
{
	unsigned long start = 0, n = 0;
	sigset_t others;
	sigfillset(&others); /* otherwise the handler's sigreturn would be dispatched, too */
	sigdelset(&others, SIGSYS);
	pthread_sigmask(SIG_BLOCK, &others, NULL);
	while (late)
		target_sleep_us(1000);
	if (how && !find_libc(&start, &n))
		wrong++;
	if (prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, start, n, &dispatch))
		refused = 1;
	for (long i = 0; !target_stop && !refused; i++) {
		dispatch = GIVEN;
		wrong += foo(5) != 16;
		raw(FOREIGN); /* the handler sets no result, and none is needed */
		wrong += foreign != i + 1;
		for (volatile int spin = 0; spin < 20000; spin++) /* code without system calls */
			;
		dispatch = how ? GIVEN : MADE;
		target_sleep_us(300);
	}
	prctl(PR_SET_SYSCALL_USER_DISPATCH, 0, 0, 0, 0);
	return arg;
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_sigaction = on_sys, .sa_flags = SA_SIGINFO | SA_NODEFER};
	pthread_t t;
	how = target_number(argc, argv, 1, 0);
	late = target_number(argc, argv, 2, 0) != 0;
	target_stop_on_term();
	sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_usr1, .sa_flags = SA_RESTART}, NULL);
	sigaction(SIGSYS, &action, NULL);
	pthread_create(&t, NULL, foreign_thread, NULL);
	while (!late && !foreign && !refused)
		target_sleep_us(1000);
	target_ready();
	if (refused)
		printf("NO DISPATCH\n");
	fflush(stdout);
	while (!target_stop) {
		wrong += foo(5) != 16;
		target_sleep_us(500);
	}
	pthread_join(t, NULL);
	printf("RESULT %s wrong %ld\n", wrong ? "BAD" : "OK", (long)wrong);
	return wrong != 0;
}
