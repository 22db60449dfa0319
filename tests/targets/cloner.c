/* SPDX-License-Identifier: MIT */
/*
 * cloner [alone|beside]: children in its own memory that call probed functions until SIGTERM: vfork(),
 * clone(CLONE_VM|CLONE_VFORK) on a stack of their own, and clone(CLONE_VM), which runs at the same time without being a thread.
 * "alone": the last kind only; "beside": one of those, which lives as long as the program.
 */
#include "target_foo.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define STACK (256u << 10)
#define CALLS 200u

static char stack[3][STACK] __attribute__((aligned(16)));
static volatile unsigned wrong;

TARGET_PROBED unsigned nested(unsigned a)
{
	return foo(a, "in") + foo(a + 1, "side");
}

/* 42 if every result is right. It has no thread pointer of its own, so it uses only system calls of libc. */
static int work(unsigned i)
{
	for (unsigned k = 0; k < CALLS; k++)
		if (nested(i + k) != target_expected(i + k, "in") + target_expected(i + k + 1, "side"))
			return 1;
	return 42;
}

static int child(void *arg)
{
	return work((unsigned)(uintptr_t)arg);
}

/* It shares the program's variables, also the one that ends it. */
static int neighbour(void *arg)
{
	int status = 42;
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* also if the test kills the program */
	for (unsigned i = (unsigned)(uintptr_t)arg; !target_stop && status == 42; i += CALLS)
		status = work(i);
	return status;
}

static long status_of(pid_t pid)
{
	int status = -1;
	while (waitpid(pid, &status, __WALL) < 0 && errno == EINTR)
		;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 42)
		fprintf(stderr, "child %d: status %#x\n", (int)pid, (unsigned)status);
	return !WIFEXITED(status) || WEXITSTATUS(status) != 42;
}

static __attribute__((noinline)) pid_t by_vfork(unsigned i)
{
	pid_t pid = vfork();
	if (pid == 0)
		_exit(work(i));
	return pid;
}

static pid_t by_clone(int (*run)(void *), unsigned i, int flags, unsigned which)
{
	return clone(run, stack[which] + STACK, flags | SIGCHLD, (void *)(uintptr_t)i);
}

int main(int argc, char **argv)
{
	const bool alone = argc > 1 && !strcmp(argv[1], "alone");
	long bad = 0;

	target_stop_on_term();
	const pid_t other = argc > 1 && !strcmp(argv[1], "beside") ? by_clone(neighbour, 1, CLONE_VM, 2) : 0;
	if (other)
		fprintf(stderr, "neighbour %d\n", (int)other);
	target_ready();
	for (unsigned i = 0; !target_stop; i++) {
		if (!alone) {
			bad += status_of(by_vfork(i));
			bad += status_of(by_clone(child, i, CLONE_VM | CLONE_VFORK, 0));
		}
		const pid_t first = by_clone(child, i, CLONE_VM, 0), second = by_clone(child, i + 7, CLONE_VM, 1);
		for (unsigned k = 0; k < CALLS; k++)
			bad += nested(i + k) != target_expected(i + k, "in") + target_expected(i + k + 1, "side");
		bad += status_of(first) + status_of(second);
		target_sleep_us(2000);
	}
	bad += other ? status_of(other) : 0;
	printf("RESULT %s\n", bad ? "BAD" : "OK");
	return bad != 0;
}
