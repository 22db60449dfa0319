// SPDX-License-Identifier: MIT
// frames [ROUNDS]: stacks that are hard to unwind, one function after the other, to be stopped anywhere: string functions of all
// lengths, lazy binding, the vdso, signal frames, jumps, stacks of its own, realigned frames, callbacks, calls that do not
// return.
#include <alloca.h>
#include <locale.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <wchar.h>

#define PART __attribute__((noipa))

static volatile long sum;
static long bad;
static char a[5000], b[5000];

PART void part_copies(void)
{
	for (size_t n = 1; n < sizeof(a); n += n / 3 + 1) {
		memset(a, (int)n, n);
		memcpy(b, a, n);
		memmove(b + 1, b, n - 1);
		bad += memcmp(a, b, n) != 0 || (n > 1 && memchr(b, (int)n + 1, n));
	}
}

PART void part_strings(void)
{
	for (size_t n = 1; n < 300; n += n / 2 + 1) {
		memset(a, 'x', n);
		a[n] = 0;
		strcpy(b, a);
		b[n - 1] = 'Y';
		bad += strlen(a) != n || !strcmp(a, b) || !strcasecmp(a, b) || strchr(a, 'y') || strrchr(b, 'Y') != b + n - 1;
		bad += strncmp(a, b, n) == 0 || strstr(b, "xY") == b + n || strspn(a, "xyz") != n;
		sum += strcoll(a, b) + (long)strxfrm(b, a, sizeof(b));
	}
	bad += wcslen(L"four") != 4;
}

PART void part_numbers(void)
{
	char text[200];
	snprintf(text, sizeof(text), "%d %s %.17g %Lg", 12345, "text", 1.0 / 3, 2.5L);
	bad += strtod("0.25", NULL) != 0.25 || strtol("-77", NULL, 0) != -77;
	sum += (long)strlen(text);
}

PART void part_clocks(void)
{
	struct timespec ts;
	struct timeval tv;
	for (int i = 0; i < 5; i++) {
		bad += clock_gettime(CLOCK_MONOTONIC, &ts) || clock_gettime(CLOCK_REALTIME_COARSE, &ts) ||
		       gettimeofday(&tv, NULL);
		bad += clock_getres(CLOCK_REALTIME, &ts) || time(NULL) < 0;
		bad += syscall(SYS_getpid) != getpid();
	}
}

static int by_value(const void *x, const void *y)
{
	return *(const int *)x - *(const int *)y;
}

PART void part_callbacks(void)
{
	int values[] = {9, 3, 7, 1, 8, 2, 6, 4, 5, 0, 11, 10}, key = 7;
	qsort(values, 12, sizeof(int), by_value);
	bad += values[3] != 3 || !bsearch(&key, values, 12, sizeof(int), by_value);
	free(realloc(calloc(100, 50), 9000));
}

// Frames whose size or alignment the compiler does not know.
PART static long realigned(int n)
{
	_Alignas(64) char aligned[128];
	char *more = alloca((size_t)n * 16);
	memset(aligned, n, sizeof(aligned));
	memset(more, n, (size_t)n * 16);
	return n ? aligned[3] + more[1] + realigned(n - 1) : 0;
}

PART void part_realigned(void)
{
	bad += realigned(5) != 30;
}

static jmp_buf env;
static sigjmp_buf signal_env;

PART static _Noreturn void leave(int how)
{
	longjmp(env, how);
}

// Its last instruction is a call: the return address is another function's first byte.
PART static _Noreturn void last_call(void)
{
	leave(7);
}

PART void part_jumps(void)
{
	int got = setjmp(env);
	if (!got)
		last_call();
	bad += got != 7;
}

static void on_signal(int sig)
{
	char text[40];
	sum += sig + snprintf(text, sizeof(text), "%d", sig);
	if (sig == SIGUSR1)
		raise(SIGUSR2);
	if (sig == SIGSEGV)
		siglongjmp(signal_env, 3);
}

PART static void fault(void)
{
	*(volatile int *)(uintptr_t)sum = 1;
}

PART void part_signals(void)
{
	static char alternate[65536];
	const stack_t ss = {.ss_sp = alternate, .ss_size = sizeof(alternate)};
	struct sigaction sa = {.sa_handler = on_signal};
	bad += sigaltstack(&ss, NULL) || sigaction(SIGUSR1, &sa, NULL);
	sa.sa_flags = SA_ONSTACK;
	bad += sigaction(SIGUSR2, &sa, NULL) || sigaction(SIGSEGV, &sa, NULL);
	raise(SIGUSR2);
	raise(SIGUSR1);
	sum = 8;
	if (!sigsetjmp(signal_env, 1))
		fault();
}

static ucontext_t back, other;

static void on_other_stack(int n)
{
	sum += n;
	swapcontext(&other, &back);
	sum += realigned(1);
}

PART void part_contexts(void)
{
	static char stack[65536];
	bad += getcontext(&other);
	other.uc_stack = (stack_t){.ss_sp = stack, .ss_size = sizeof(stack)};
	other.uc_link = &back;
	makecontext(&other, (void (*)(void))on_other_stack, 1, 5);
	bad += swapcontext(&back, &other) || swapcontext(&back, &other);
}

static __thread long own;

PART static void *thread(void *arg)
{
	own++;
	sum += own;
	return arg;
}

PART void part_threads(void)
{
	pthread_t t;
	void *result = NULL;
	bad += pthread_create(&t, NULL, thread, env) || pthread_join(t, &result) || result != env;
}

PART void part_output(void)
{
	printf("a line of %d words and %s\n", 7, "some more");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static void (*const part[])(void) = {part_copies,    part_strings,   part_numbers, part_clocks,
	                                     part_callbacks, part_realigned, part_jumps,   part_signals,
	                                     part_contexts,  part_threads,   part_output};
	setlocale(LC_ALL, "");
	for (int rounds = argc > 1 ? atoi(argv[1]) : 1; rounds > 0; rounds--)
		for (size_t i = 0; i < sizeof(part) / sizeof(part[0]); i++)
			part[i]();
	printf("RESULT %s\n", bad ? "BAD" : "OK");
	return bad != 0;
}
