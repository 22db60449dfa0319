/* SPDX-License-Identifier: MIT */
/*
 * calls [ROUNDS]: makes system calls by libc's functions, by syscall() and by an instruction of its own, from several threads,
 * and prints how many of each it made.
 */
#include "target.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define THREADS 4

static long rounds;
static volatile long getpgid_number = SYS_getpgid; /* unknown to the compiler */
static unsigned long bad;

static __attribute__((noinline)) long by_hand(long nr, long arg)
{
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "a"(nr), "D"(arg) : "rcx", "r11", "memory");
	return result;
}

static void one_round(int zero)
{
	char buf[16] = "x";
	bad += read(zero, buf, 7) != 7 || buf[0];
	bad += open("/nonexistent/path", O_RDONLY) != -1 || errno != ENOENT;
	bad += syscall(SYS_getppid) != getppid();
	bad += by_hand(getpgid_number, 0) != getpgid(0);
	bad += by_hand(getpgid_number, -5) != -ESRCH;
	bad += by_hand(900, 0) != -ENOSYS;
}

static void *work(void *data)
{
	const int zero = open("/dev/zero", O_RDONLY);
	(void)data;
	for (long i = 0; i < rounds; i++)
		one_round(zero);
	bad += close(zero) != 0;
	return NULL;
}

static void child(bool forks)
{
	int status = 0;
	const pid_t pid = forks ? fork() : vfork();
	if (!pid)
		_exit(7);
	bad += waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 7;
}

static void children(void)
{
	for (int i = 0; i < 5; i++)
		child(i % 2);
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS];
	rounds = target_number(argc, argv, 1, 100);
	target_ready();
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, work, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	children();
	const long n = rounds * THREADS;
	/* The calls of clone() and of libc's thread start are not counted here. */
	printf("read %ld getppid %ld getpgid %ld syscall_900 %ld enoent %ld wait4 5\n", n, 2 * n, 3 * n, n, n);
	printf(bad ? "RESULT BAD %lu\n" : "RESULT OK\n", bad);
	return bad != 0;
}
