/* SPDX-License-Identifier: MIT */
/* Pointers to objects that the compiler keeps in registers: the pointer does not exist, but the value that it points to does. */
#include "values.h"

struct both {
	int a;
	int64_t b;
};

#define KEEP(x) __asm__ volatile("" : "+r"(x))

static inline int64_t sum(const struct both *p, const int *q)
{
	int64_t a = p->a, b = p->b, c = *q; /* here: LINE */
	KEEP(a); /* here: LINE */
	KEEP(b);
	KEEP(c);
	__asm__ volatile("nop");
	return a * 3 + b * 5 + c + p->a * p->b + *q; /* here: LINE */
}

static __attribute__((noinline, noclone)) int64_t work(int a, int64_t b, int c)
{
	struct both t = {a, b};
	int n = c + 1;
	return sum(&t, &n);
}

int main(int argc, char **argv)
{
	for (int i = 0; argc > 1 && i < atoi(argv[1]); i++) {
		const int a = (int)any(), c = (int)(any() & 0xffff);
		const int64_t b = (int64_t)any();
		printf("{\"a\":%d,\"b\":%" PRId64 ",\"c\":%d,", a, b, c + 1);
		printf("\"result\":%" PRId64 "}\n", work(a, b, c));
		breathe(i);
	}
	return 0;
}
