/* SPDX-License-Identifier: MIT */
/*
 * forkload: forks in a loop; each child loads a library that the parent does not have, and exits normally. A child that fails, or
 * does not end within five seconds, makes the result bad. Until SIGTERM.
 */
#include "target.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_MS 5000

__attribute__((noinline)) int foo(int n)
{
	__asm__ volatile("" : "+r"(n) : : "memory");
	return n + 1;
}

static void child(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	exit(dlopen("libanl.so.1", RTLD_NOW) ? 0 : 7);
}

static int ends_well(pid_t pid)
{
	int status = 0;
	for (int ms = 0; ms < CHILD_MS; ms++) {
		if (waitpid(pid, &status, WNOHANG) == pid) {
			if (status)
				printf("child %d: exit status %d, signal %d\n", pid, WEXITSTATUS(status), WTERMSIG(status));
			return status == 0;
		}
		target_sleep_us(1000);
	}
	printf("child %d: did not end within %d ms\n", pid, CHILD_MS);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return 0;
}

int main(void)
{
	int bad = 0, n = 0;
	target_stop_on_term();
	target_ready();
	while (!target_stop) {
		n = foo(n);
		pid_t pid = fork();
		if (pid == 0)
			child();
		bad += pid < 0 || !ends_well(pid);
	}
	printf("children %d bad %d\nRESULT %s\n", n, bad, bad ? "BAD" : "OK");
	return bad != 0;
}
