/* SPDX-License-Identifier: MIT */
/*
 * Single-steps a child through libc, the dynamic loader's lazy binding, signal handlers and callbacks. At every instruction
 * our walk of its stack must equal that of elfutils, which reads the CFI.
 */
#include "agent/unwind/unwind.h"
#include "helper_cfi_oracle.h"
#include "helper_unwind.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX 100
#ifdef __SANITIZE_ADDRESS__ /* most steps would be in its interceptors */
#define STEPS 4000
#else
#define STEPS 60000
#endif

static volatile int sink;

static void get_regs(pid_t pid, struct dp_regs *ret)
{
	struct user_regs_struct u;

	cr_assert_eq(ptrace(PTRACE_GETREGS, pid, NULL, &u), 0);
	*ret = (struct dp_regs){
	        {u.rax, u.rcx, u.rdx, u.rbx, u.rsp, u.rbp, u.rsi, u.rdi, u.r8, u.r9, u.r10, u.r11, u.r12, u.r13, u.r14, u.r15},
	        u.rip,
	        u.eflags};
}

static void report(const char *what, const uint64_t *pcs, size_t n)
{
	fprintf(stderr, "%s:", what);
	for (size_t i = 0; i < n; i++)
		fprintf(stderr, " %#lx", (unsigned long)pcs[i]);
	fprintf(stderr, "\n");
}

static long to_the_end; /* walks that the oracle completed */

/* False if the two walks differ. The last pc of a cut walk may be data, which we do not report as a frame. */
static bool agree(struct test_unwind *t, struct oracle *o, pid_t pid)
{
	uint64_t ours[MAX], theirs[MAX];
	struct dp_regs regs;
	size_t n, m;
	bool whole, same;

	get_regs(pid, &regs);
	m = oracle_walk(o, &regs, theirs, MAX, &whole);
	n = test_unwind_walk(t, &regs, ours, MAX);
	to_the_end += whole;
	same = (whole ? n == m : n + 1 >= m) && !memcmp(ours, theirs, 8 * (n < m ? n : m));
	if (!same) {
		report("  ours", ours, n);
		report(whole ? "theirs" : "theirs, cut", theirs, m);
	}
	return same;
}

/* Waits for the next stop of the child and lets it take one more instruction. False at its end. */
static bool single_step(pid_t pid, int *signal)
{
	int status;

	cr_assert_eq(ptrace(PTRACE_SINGLESTEP, pid, NULL, *signal), 0);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	if (!WIFSTOPPED(status)) {
		cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with %#x", status);
		return false;
	}
	*signal = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
	return true;
}

static pid_t start_child(void (*code)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		code();
		_exit(0);
	}
	cr_assert_gt(pid, 0);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFSTOPPED(status));
	return pid;
}

/* The stack range that the walker remembers stays valid from step to step, as from hit to hit. */
static void walk_every_step(void (*code)(void), long at_least)
{
	struct test_unwind *t = test_unwind_create();
	long steps = 0, different = 0;
	pid_t pid = start_child(code);
	struct oracle *o = oracle_create(pid);
	int signal = 0;

	to_the_end = 0;
	test_unwind_memory_of(pid);
	while (steps < STEPS && different < 5 && single_step(pid, &signal)) {
		steps++;
		if (!agree(t, o, pid))
			different++;
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	test_unwind_memory_of(0);
	oracle_destroy(o);
	test_unwind_destroy(t);
	cr_assert_geq(steps, at_least);
	cr_assert_eq(different, 0);
	cr_assert_gt(to_the_end, steps * 9 / 10);
}

static void formatting(void)
{
	char buf[200];

	snprintf(buf, sizeof(buf), "%d %s %.17g %Lg", 12345, "text", 1.0 / 3, 2.5L);
	sink += (int)strtod("3.14159265358979e100", NULL);
	sink += (int)strlen(buf) + (int)strtol("-77", NULL, 0);
}

Test(unwind_steps, formatting_and_lazy_binding)
{
	walk_every_step(formatting, 1000);
}

static int by_value(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void sorting(void)
{
	int values[12] = {9, 3, 7, 1, 8, 2, 6, 4, 5, 0, 11, 10};
	char a[300], b[300];

	qsort(values, 12, sizeof(int), by_value);
	memset(a, 'x', sizeof(a));
	memcpy(b, a, sizeof(b));
	memmove(b + 3, b, 200);
	sink += memcmp(a, b, sizeof(a)) + strcmp(a + 299, "y") + values[3];
	free(malloc(5000));
}

Test(unwind_steps, callbacks_and_vector_code)
{
	walk_every_step(sorting, 500);
}

static void on_signal(int sig)
{
	sink += sig;
}

static void signals(void)
{
	static char alternate[65536];
	stack_t ss = {.ss_sp = alternate, .ss_size = sizeof(alternate)};
	struct sigaction sa = {.sa_handler = on_signal};

	sigaction(SIGUSR1, &sa, NULL);
	raise(SIGUSR1);
	sigaltstack(&ss, NULL);
	sa.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR2, &sa, NULL);
	raise(SIGUSR2);
}

Test(unwind_steps, signal_handlers)
{
	walk_every_step(signals, 100);
}

static void *nothing(void *arg)
{
	return arg;
}

static void unusual(void)
{
	struct timespec ts;
	pthread_t thread;
	jmp_buf env;

	if (!setjmp(env))
		longjmp(env, 1);
	clock_gettime(CLOCK_MONOTONIC, &ts);
	if (!pthread_create(&thread, NULL, nothing, NULL))
		pthread_join(thread, NULL);
}

Test(unwind_steps, longjmp_vdso_and_clone)
{
	walk_every_step(unusual, 300);
}
