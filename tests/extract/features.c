/* SPDX-License-Identifier: MIT */
/* Frames with the rarer parts of C, to compare with gdb's reading. Waits forever. */
#include <alloca.h>
#include <complex.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
enum bits { NONE = 0, ONE = 1, TWO = 2, FOUR = 4 };
enum big { LARGE = 0x7fffffffffLL, SMALL = -1 };
struct flexible {
	unsigned n;
	short rest[];
};
struct fields {
	unsigned a : 1, b : 7, : 4, c : 9;
	signed d : 5;
	unsigned long long e : 40, f : 24;
	_Bool g : 1;
	enum bits h : 3;
	char tail[3];
} __attribute__((packed));
struct unnamed {
	union {
		struct {
			uint16_t low, high;
		};
		uint32_t both;
		float real;
	};
	int : 0;
	struct {
		char in;
	} named;
};
union value {
	long number;
	double real;
	char text[8];
	struct {
		void *at;
	} deep;
};
typedef float vector __attribute__((vector_size(16)));
static __thread int own = 5;
static volatile int sink, stop;
static struct hidden *opaque;

static void wait_for_ever(void)
{
	while (!stop)
		pause();
}

NOINLINE static int scopes(int x)
{
	int y = x + 1;
	{
		long x = y * 2;
		sink += (int)x;
		{
			char x = 'q';
			static int y = 77;
			sink += x + y;
			y++;
			wait_for_ever();
			sink += x;
		}
		sink += (int)x;
	}
	return x + y;
}

NOINLINE static int numbers(__int128 wide, unsigned __int128 high, long double precise, float f, double d, _Bool yes)
{
	float complex fc = 1 + 2 * I;
	double complex dc = 3 - 4 * I;
	long double complex lc = 5 + 6.5L * I;
	_Atomic int atomic = 42;
	_Atomic(char *) text = "atomic";
	volatile unsigned char byte = 200;
	const signed char minus = -100;
	wchar_t wchar = L'ä';
	vector four = {1, 2, 3, 4};
	enum big big = LARGE;
	enum bits mixed = ONE | FOUR, out = 64;
	float nan = __builtin_nanf(""), inf = -__builtin_inff();
	sink = (int)(wide + (__int128)high) + (int)precise + (int)f + (int)d + yes + byte + minus;
	const int r = scopes(3);
	return r + (int)creal(dc) + (int)crealf(fc) + (int)creall(lc) + atomic + *text + wchar + (int)four[1] + (int)big + mixed +
	       out + (nan > inf);
}

NOINLINE static int shapes(int n, struct fields passed, union value any, ...)
{
	va_list list;
	int length[n], square[n][n + 1];
	char text[n * 4];
	struct flexible *f = alloca(sizeof(*f) + 8 * sizeof(short));
	struct unnamed u = {.both = 0x10002, .named = {'i'}};
	int empty[0], (*row)[3] = calloc(3, sizeof(*row)), *table[2] = {&n, NULL};
	int (*function)(int) = scopes;
	void (*none)(void) = NULL;
	struct {
		int x;
		struct {
			int y[2];
		} z;
	} local = {1, {{2, 3}}};
	va_start(list, any);
	const int first = va_arg(list, int);
	va_end(list);
	f->n = 8;
	memset(text, 'x', sizeof(text));
	memset(length, 1, sizeof(length));
	memset(square, 2, sizeof(square));
	own += first;
	sink += own;
	const int r = numbers(-((__int128)1 << 100), ((unsigned __int128)1 << 127) + 5, 1.25L, 0.5f, 1e300, true);
	return r + length[0] + square[0][1] + text[1] + (int)f->n + (int)u.both + row[1][1] + *table[0] + function(1) + local.x +
	       (none != NULL) + (int)sizeof(empty) + passed.c + (int)any.number + (opaque != NULL);
}

#ifndef __clang__
static int nested(int n)
{
	int around = n * 3;
	int inner(int k)
	{
		struct fields f = {
		        .a = 1, .b = 100, .c = 300, .d = -9, .e = 1ULL << 39, .f = 77, .g = 1, .h = FOUR | ONE, .tail = "ab"};
		union value v = {.real = 1.5};
		return shapes(k + around, f, v, 9);
	}
	return inner(1) + around;
}
#else
static int nested(int n)
{
	struct fields f = {.a = 1, .b = 100, .c = 300, .d = -9, .e = 1ULL << 39, .f = 77, .g = 1, .h = FOUR | ONE, .tail = "ab"};
	union value v = {.real = 1.5};
	return shapes(n + 1, f, v, 9);
}
#endif

static void handler(int number, siginfo_t *info, void *context)
{
	int here = number + 1;
	sink += here + (info != NULL) + (context != NULL);
	wait_for_ever();
	sink += here;
}

NOINLINE static int faults(volatile int *p, int a, int b)
{
	int before = a * b;
	sink = *p;
	return before + a;
}

static void *on_own_stack(void *argument)
{
	static char stack[65536];
	const stack_t other = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	sigaltstack(&other, NULL);
	sigaction(SIGSEGV, &action, NULL);
	return (void *)(long)(faults(argument, 6, 7) + 1);
}

NOINLINE static unsigned deep(unsigned n)
{
	volatile unsigned here = n;
	if (!n)
		wait_for_ever();
	return deep(n - 1) + here;
}

static void *recursion(void *argument)
{
	return (void *)(long)deep((unsigned)(long)argument);
}

static int compare(const void *a, const void *b)
{
	const int *x = a, *y = b;
	wait_for_ever();
	return *x - *y;
}

static void *through_library(void *argument)
{
	int list[3] = {3, 1, 2};
	qsort(list, 3, sizeof(*list), compare);
	return argument;
}

int main(int argc, char **argv)
{
	pthread_t t[3];
	pthread_create(&t[0], NULL, on_own_stack, NULL);
	pthread_create(&t[1], NULL, recursion, (void *)40);
	pthread_create(&t[2], NULL, through_library, argv);
	return nested(argc + 1);
}
