/* SPDX-License-Identifier: MIT */
/*
 * The cost of a trap, beside its floor: an int3 and an empty SIGTRAP handler. For each line on standard input it prints ns of CPU
 * time per call, of a function to be probed (traps probed) or of one with an int3 of its own (traps bare).
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 20000 };

__attribute__((noinline)) static void bare(void)
{
	__asm__ volatile("int3");
}

__attribute__((noinline)) void trapped(void)
{
	__asm__ volatile("nop");
}

static void nothing(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)info, (void)context;
}

static double ns_of(void (*volatile f)(void))
{
	struct timespec a, b;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
	for (int i = 0; i < BATCH; i++)
		f();
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	return ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / BATCH;
}

int main(int argc, char **argv)
{
	char line[16];
	const int own = argc > 1 && !strcmp(argv[1], "bare");
	const struct sigaction action = {.sa_sigaction = nothing, .sa_flags = SA_SIGINFO};
	if (own)
		sigaction(SIGTRAP, &action, NULL);
	printf("READY %d\n", (int)getpid());
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		printf("%.1f\n", ns_of(own ? bare : trapped));
		fflush(stdout);
	}
	return 0;
}
