/* SPDX-License-Identifier: MIT */
/* Functions that end in tail calls, to compare with gdb's reading. Waits forever. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#if defined(__clang__)
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noipa))
#endif
static volatile int sink;

/* It only calls by a jump, and is itself reached by a jump from the library's function. */
NOINLINE static int last(int x, int y)
{
	sink = x * y;
	pause();
	return sink + x;
}
NOINLINE static int waits(void)
{
	sink++;
	return pause();
}
NOINLINE static int second(int x, int y, long lost)
{
	sink += (int)lost;
	return last(x + 1, y);
}
NOINLINE static int first(int x)
{
	sink += x;
	return second(x + 10, 3, 40);
}

/* Two chains of tail calls lead to the same end: only the frames that both begin with are certain. */
NOINLINE static int left(int x)
{
	sink += 5;
	return last(x, 1);
}
NOINLINE static int right(int x)
{
	sink += 7;
	return last(x, 2);
}
NOINLINE static int fork_in_the_road(int x)
{
	if (x & 1)
		return left(x + 1);
	return right(x + 2);
}
NOINLINE static int before_fork(int x)
{
	sink += 2;
	return fork_in_the_road(x * 2);
}

/* Jumps to its own beginning, so its parameters no longer have the values that it was called with. */
NOINLINE static int even(int n, int other);
NOINLINE static int odd(int n, int other)
{
	sink += other;
	if (n == 1) {
		sink += pause();
		n = 0;
		other = 0;
	}
	return even(n - 1, other + 1);
}
NOINLINE static int even(int n, int other)
{
	sink += other;
	if (n < 0)
		return other;
	return odd(n - 1, other + 2);
}

/* The target of a call through a pointer is unknown. */
static int (*volatile by_pointer)(int) = first;
NOINLINE static int indirect(int x)
{
	sink += x;
	return by_pointer(x + 1);
}
static inline int in_between(int x)
{
	sink -= x;
	return first(x + 100);
}
NOINLINE static int copied(int x)
{
	sink += 9;
	return in_between(x + 3);
}

static void *thread(void *argument)
{
	const long which = (long)argument;
	int result = 0;
	if (which == 0)
		result += first(1) + 1;
	if (which == 1)
		result += before_fork(3) + 2;
	if (which == 2)
		result += even(4, 8) + 3;
	if (which == 3)
		result += indirect(5) + 4;
	if (which == 4)
		result += copied(6) + 5;
	if (which == 5)
		result += waits() + 6;
	return (void *)(long)result;
}

int main(int argc, char **argv)
{
	pthread_t t[6];
	for (long i = 0; i < 6; i++)
		pthread_create(&t[i], NULL, thread, (void *)i);
	for (long i = 0; i < 6; i++)
		pthread_join(t[i], NULL);
	return argc + !argv;
}
