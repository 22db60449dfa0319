/* SPDX-License-Identifier: MIT */
/*
 * whole [ROUNDS]: calls whose arguments are gone when they return, recursion, longjmp, exceptions and threads; each function's
 * result follows from its arguments. 0 rounds: until SIGTERM. Prints what it did.
 */
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <unistd.h>

#define THREADS 3
#define NOINLINE extern "C" __attribute__((noinline, noclone))

static long rounds;
static __thread jmp_buf back;
static unsigned long bad;
static volatile sig_atomic_t stopped;

static void on_term(int)
{
	stopped = 1;
}

struct gone {
	int code;
};

/* Changes its arguments, so that their values at the return are others. */
NOINLINE int handle(int id, const char *name)
{
	char copy[16];
	strcpy(copy, name);
	const int n = (int)strlen(copy);
	asm volatile("" : "+r"(id), "+r"(name) : : "memory");
	id = id * 2 + n;
	name = NULL;
	asm volatile("" : "+r"(id), "+r"(name) : : "memory");
	return id;
}

/* The compiler does not know that it calls itself, so that each call is one. */
NOINLINE unsigned down(unsigned depth);
static unsigned (*volatile again)(unsigned) = down;
NOINLINE unsigned down(unsigned depth)
{
	return depth ? again(depth - 1) + depth : 0;
}

/* Every third call is left by longjmp, every fifth by an exception. */
NOINLINE int leave(int how)
{
	if (how % 3 == 0)
		longjmp(back, 1);
	if (how % 5 == 0)
		throw gone{how};
	return how + 1;
}

NOINLINE int last(int x)
{
	asm volatile("");
	return x - 1;
}

/* Ends by a tail call. */
NOINLINE int tail(int x)
{
	asm volatile("");
	return last(x + 10);
}

NOINLINE void nothing(void)
{
	asm volatile("");
}

static int attempt(int how)
{
	if (setjmp(back))
		return -1;
	try {
		return leave(how);
	} catch (const gone &g) {
		return -g.code;
	}
}

static int expected(int how)
{
	return how % 3 == 0 ? -1 : how % 5 == 0 ? -how : how + 1;
}

static void one_round(int i)
{
	unsigned long wrong = 0;
	static const char *const names[] = {"x", "yy", "zzz"};
	wrong += handle(i, names[i % 3]) != i * 2 + i % 3 + 1;
	wrong += down((unsigned)i % 6) != (unsigned)(i % 6) * (unsigned)(i % 6 + 1) / 2;
	wrong += attempt(i) != expected(i);
	wrong += tail(i) != i + 9;
	nothing();
	__atomic_fetch_add(&bad, wrong, __ATOMIC_RELAXED);
}

static void *work(void *data)
{
	for (int i = 0; rounds ? i < rounds : !stopped; i++)
		one_round(i);
	return data;
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS];
	rounds = argc > 1 ? strtol(argv[1], NULL, 0) : 0;
	signal(SIGTERM, on_term);
	printf("READY %d\n", (int)getpid());
	fflush(stdout);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, work, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	printf(bad ? "RESULT BAD %lu\n" : "RESULT OK\n", bad);
	return bad != 0;
}
