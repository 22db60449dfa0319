/* SPDX-License-Identifier: MIT */
/*
 * starter HOW N FILE [ARGS...]: starts FILE N times, one after the other or, with "many", all at once; prints "STATUS S COUNT"
 * for each exit status (128 + signal; 200 + errno: exec failed). HOW: fork, vfork, spawn, thread (exec by a second thread), at
 * (execveat on a descriptor), many.
 */
#include "target.h"

#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;
static char **command;

static void *exec_it(void *arg)
{
	execve(command[0], command, environ);
	_exit(200 + errno);
	return arg;
}

static void exec_in_thread(void)
{
	pthread_t t;
	pthread_create(&t, NULL, exec_it, NULL);
	pthread_join(t, NULL);
}

static void exec_at(void)
{
	const int fd = open(command[0], O_PATH | O_CLOEXEC);
	syscall(SYS_execveat, fd, "", command, environ, AT_EMPTY_PATH);
	_exit(200 + errno);
}

static pid_t start(const char *how)
{
	pid_t pid = 0;
	if (!strcmp(how, "spawn")) {
		const int err = posix_spawn(&pid, command[0], NULL, NULL, command, environ);
		return err ? -err : pid;
	}
	pid = !strcmp(how, "vfork") ? vfork() : fork();
	if (pid)
		return pid;
	if (!strcmp(how, "thread"))
		exec_in_thread();
	else if (!strcmp(how, "at"))
		exec_at();
	exec_it(NULL);
	return 0;
}

static unsigned outcome(pid_t pid)
{
	int status = 0;
	if (pid < 0)
		return 200u + (unsigned)-pid;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? (unsigned)WEXITSTATUS(status) : 128u + (unsigned)WTERMSIG(status);
}

int main(int argc, char **argv)
{
	enum { MOST = 1024 };
	static pid_t pid[MOST];
	static unsigned count[512];
	const long n = target_number(argc, argv, 2, 1);
	const bool many = argc > 3 && !strcmp(argv[1], "many");
	if (argc < 4 || n > MOST)
		return 2;
	command = argv + 3;
	target_ready();
	for (long i = 0; i < n; i++) {
		pid[i] = start(argv[1]);
		if (!many)
			count[outcome(pid[i]) % 512]++;
	}
	for (long i = 0; many && i < n; i++)
		count[outcome(pid[i]) % 512]++;
	for (unsigned i = 0; i < 512; i++)
		if (count[i])
			printf("STATUS %u %u\n", i, count[i]);
	puts("RESULT OK");
	return 0;
}
