/* SPDX-License-Identifier: MIT */
/*
 * stop_floor PID STACK_BYTES: the floor of stopping every thread of a process, reading its registers and STACK_BYTES of its
 * stack, and continuing it, with the fewest possible ptrace calls. stop_floor fork MIB: the time of fork() in a process of that
 * size. Prints milliseconds.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST 65536

static double now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int list(int pid, int *tid)
{
	char path[64];
	int n = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	DIR *d = opendir(path);
	for (struct dirent *e = d ? readdir(d) : NULL; e && n < MOST; e = readdir(d))
		if (*e->d_name != '.')
			tid[n++] = atoi(e->d_name);
	if (d)
		closedir(d);
	return n;
}

static double stop(int pid, size_t bytes)
{
	static int tid[MOST];
	static struct user_regs_struct regs[MOST];
	const int n = list(pid, tid);
	char *stack = calloc(1, bytes + 1);
	memset(stack, 1, bytes);
	for (int i = 0; i < n; i++)
		if (ptrace(PTRACE_SEIZE, tid[i], 0, 0))
			exit(1);
	const double from = now_ms();
	for (int i = 0; i < n; i++)
		ptrace(PTRACE_INTERRUPT, tid[i], 0, 0);
	for (int i = 0; i < n; i++)
		waitpid(tid[i], NULL, __WALL);
	for (int i = 0; i < n; i++) {
		struct iovec v = {&regs[i], sizeof(regs[i])};
		ptrace(PTRACE_GETREGSET, tid[i], NT_PRSTATUS, &v);
	}
	for (int i = 0; i < n && bytes; i++) {
		struct iovec here = {stack, bytes}, there = {(void *)regs[i].rsp, bytes};
		if (process_vm_readv(pid, &here, 1, &there, 1, 0) <= 0) {
			there.iov_len = 4096 - (regs[i].rsp & 4095);
			process_vm_readv(pid, &here, 1, &there, 1, 0);
		}
	}
	for (int i = 0; i < n; i++)
		ptrace(PTRACE_DETACH, tid[i], 0, 0);
	const double took = now_ms() - from;
	free(stack);
	return took;
}

static double fork_once(size_t mib)
{
	const size_t bytes = mib << 20;
	char *p = malloc(bytes + 1);
	for (size_t i = 0; i < bytes; i += 4096)
		p[i] = 1;
	const double from = now_ms();
	const pid_t pid = fork();
	if (!pid)
		_exit(0);
	const double took = now_ms() - from;
	waitpid(pid, NULL, 0);
	free(p);
	return took;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	printf("%.3f\n",
	       !strcmp(argv[1], "fork") ? fork_once((size_t)atol(argv[2])) : stop(atoi(argv[1]), (size_t)atol(argv[2])));
	return 0;
}
