/* SPDX-License-Identifier: MIT */
/* forker: fork, vfork + exec and posix_spawn in a loop, probed functions on both sides, results checked. Until SIGTERM. */
#include "target_foo.h"

#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

TARGET_PROBED unsigned in_child(unsigned a)
{
	return foo(a, "child");
}

static int status_of(pid_t pid)
{
	int status = -1;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -status;
}

static long by_fork(unsigned i)
{
	pid_t pid = fork();
	if (pid == 0) {
		for (unsigned k = 0; k < 50; k++)
			if (in_child(i + k) != target_expected(i + k, "child"))
				_exit(1);
		_exit(42);
	}
	return pid < 0 || status_of(pid) != 42;
}

static long by_vfork(void)
{
	pid_t pid = vfork();
	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", "exit 43", (char *)NULL);
		_exit(1);
	}
	return pid < 0 || status_of(pid) != 43;
}

static long by_spawn(void)
{
	char *argv[] = {(char *)"sh", (char *)"-c", (char *)"exit 44", NULL};
	pid_t pid;
	return posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ) != 0 || status_of(pid) != 44;
}

int main(void)
{
	long bad = 0;

	target_stop_on_term();
	target_ready();
	for (unsigned i = 0; !target_stop; i++) {
		bad += by_fork(i) + by_vfork() + by_spawn();
		bad += foo(i, "parent") != target_expected(i, "parent");
		target_sleep_us(1000);
	}
	printf("RESULT %s\n", bad ? "BAD" : "OK");
	return bad != 0;
}
