/* SPDX-License-Identifier: MIT */
/*
 * What a probe costs a program that forks; bench/run_processes.py reads it.
 *
 *	forks hit            for each line of input: ns per call of foo() in this process and in a fork child, medians, and the
 *	                     medians of the same of bar(), which nobody probes
 *	forks fork MIB       for each line of input: us of a fork() with that much resident memory, median and least
 *
 * Parent and child take turns, batch by batch, so that both meet the same load. Between batches they sleep: the hits are drained.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CALLS = 5000, BATCHES = 60, FORKS = 12 };

#define PROBED(name)                                                                                                             \
	__attribute__((noipa)) int name(int a);                                                                                  \
	int name(int a)                                                                                                          \
	{                                                                                                                        \
		__asm__ volatile("lea 0x12345(%%rdi),%%rax" : : "D"(a) : "rax");                                                 \
		return a + 1;                                                                                                    \
	}                                                                                                                        \
	_Static_assert(1, "so that a semicolon follows")

PROBED(foo);
PROBED(bar);

static double now_ns(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double middle(double *value, int n)
{
	qsort(value, (size_t)n, sizeof(*value), ascending);
	return value[n / 2];
}

static double batch(int (*fn)(int))
{
	const double begin = now_ns(CLOCK_THREAD_CPUTIME_ID);
	for (int i = 0; i < CALLS; i++)
		fn(i);
	return (now_ns(CLOCK_THREAD_CPUTIME_ID) - begin) / CALLS;
}

struct pair {
	double foo, bar;
};

static struct pair both(void)
{
	const struct pair p = {batch(foo), batch(bar)};
	usleep(15000);
	return p;
}

/* Answers each byte by a batch. */
static void child(int in, int out)
{
	for (char byte; read(in, &byte, 1) == 1;) {
		const struct pair p = both();
		if (write(out, &p, sizeof(p)) != sizeof(p))
			break;
	}
	_exit(0);
}

static void hit(void)
{
	int to[2], from[2];
	double value[4][BATCHES];
	if (pipe(to) || pipe(from))
		exit(1);
	const pid_t pid = fork();
	if (!pid) {
		close(to[1]);
		child(to[0], from[1]);
	}
	for (int i = 0; i < BATCHES; i++) {
		struct pair theirs, ours = both();
		if (write(to[1], "", 1) != 1 || read(from[0], &theirs, sizeof(theirs)) != sizeof(theirs))
			exit(1);
		value[0][i] = ours.foo;
		value[1][i] = ours.bar;
		value[2][i] = theirs.foo;
		value[3][i] = theirs.bar;
	}
	for (int i = 0; i < 4; i++)
		printf("%.2f ", middle(value[i], BATCHES));
	close(to[0]);
	close(to[1]);
	close(from[0]);
	close(from[1]);
	waitpid(pid, NULL, 0);
}

static void forks(void)
{
	double value[FORKS];
	for (int i = 0; i < FORKS; i++) {
		const double begin = now_ns(CLOCK_MONOTONIC);
		const pid_t pid = fork();
		if (!pid)
			_exit(0);
		value[i] = (now_ns(CLOCK_MONOTONIC) - begin) / 1000;
		waitpid(pid, NULL, 0);
		foo(i);
	}
	const double median = middle(value, FORKS);
	printf("%.1f %.1f", median, value[0]);
}

int main(int argc, char **argv)
{
	const int is_hit = argc > 1 && !strcmp(argv[1], "hit");
	const size_t size = argc > 2 ? (size_t)atol(argv[2]) << 20 : 4096;
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return 1;
	madvise(memory, size, MADV_NOHUGEPAGE);
	memset(memory, 1, size);
	printf("READY\n");
	fflush(stdout);
	for (char line[16]; fgets(line, sizeof(line), stdin);) {
		if (is_hit)
			hit();
		else
			forks();
		printf("\n");
		fflush(stdout);
	}
	return 0;
}
