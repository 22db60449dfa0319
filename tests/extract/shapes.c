/* SPDX-License-Identifier: MIT */
/* Common types of variables in C, to compare with gdb's reading. Waits forever. */
#include <complex.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

enum color { RED, GREEN = 5, BLUE = -3 };
enum flags { READ = 1, WRITE = 2, EXEC = 4 };
struct node {
	struct node *next;
	const char *name;
	unsigned low : 3;
	int64_t high : 37;
	union {
		int whole;
		float part;
	};
	struct {
		short x, y;
	} at[3];
	char text[16];
	double rest[];
};
typedef int (*operation)(int, const struct node *);
static int count = 7;
static volatile int sink;

static int twice(int x, const struct node *n)
{
	return 2 * x + (int)n->low;
}

static inline int inlined(int a, const char *text)
{
	int sum = a + text[0];
	static long calls = 3;
	calls += sum;
	pause();
	return sum + (int)calls;
}

__attribute__((noinline)) static int leaf(struct node *n, enum color c, double d, float f, const char *s, uint8_t byte,
                                          int64_t big, int on_stack)
{
	double complex z = 1 + 2 * I;
	bool ok = n->low;
	enum flags bits = READ | EXEC;
	operation o = twice;
	int grid[2][3] = {{1, 2, 3}, {4, 5, 6}};
	for (int k = 3; k < 4; k++) {
		int inner = k + count;
		sink += inlined(inner, s);
	}
	return n->whole + (int)c + (int)d + (int)f + *s + (int)creal(z) + ok + (int)bits + o(3, n) + grid[1][1] + byte +
	       (int)big + on_stack;
}

__attribute__((noinline)) static int varied(int n, char ch)
{
	int length[n];
	struct node *a = calloc(1, sizeof(*a) + 8),
	            b = {.name = "bee", .low = 5, .high = -3, .whole = 42, .at = {{1, 2}}, .text = "text"};
	int *pointer = &count;
	for (int i = 0; i < n; i++)
		length[i] = i * i;
	a->next = &b;
	b.next = a;
	return leaf(a, BLUE, 2.5, 0.25f, "hello", 200, -(1LL << 40), 9) + length[n - 1] + ch + *pointer + (int)b.low;
}

int main(int argc, char **argv)
{
	return varied(argc + 3, argv[0][0]);
}
