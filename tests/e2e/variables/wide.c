/* SPDX-License-Identifier: MIT */
/* Numbers of sixteen bytes: passed in registers, on the stack, in structs; kept in variables; returned. */
#include "values.h"

typedef __int128 wide_t;
typedef unsigned __int128 uwide_t;
struct holder {
	char tag;
	wide_t w;
	uwide_t u;
	long double ld;
};
struct boxed {
	wide_t w;
};

#ifdef __clang__
#define ALONE __attribute__((noinline))
#else
#define ALONE __attribute__((noinline, noclone))
#endif

uwide_t global;
typedef __float128 quadruple;

ALONE wide_t work(struct holder *h, wide_t a, int n, struct boxed b, long double ld, uwide_t stacked, int last, quadruple q)
{
	volatile wide_t local = a + n;
	volatile long double real = ld / 3;
	wide_t sum = local + b.w + last + (h->w ^ (wide_t)stacked) + (int)real + (q > 1);
	global = (uwide_t)sum;
	__asm__ volatile("nop" : : : "memory");
	return sum; /* line of a probe: LINE */
}

ALONE long double half_of(long double x)
{
	return x / 2;
}

static wide_t wide(void)
{
	const wide_t v = (wide_t)((uwide_t)any() << 64 | any());
	return v >> (any() % 128);
}

static void print(const char *name, wide_t v)
{
	printf("\"%s\":[%" PRId64 ",%" PRIu64 "],", name, (int64_t)(v >> 64), (uint64_t)v);
}

int main(int argc, char **argv)
{
	static struct holder h;
	for (int i = 0; argc > 1 && i < atoi(argv[1]); i++) {
		const struct boxed b = {wide()};
		const wide_t a = wide();
		const uwide_t stacked = (uwide_t)wide();
		long double ld = (long double)(int64_t)any() * (i % 3 ? 1 : 1e300L) / (i % 5 ? 1 : 3);
		ld = i == 7 ? __builtin_inf() : i == 8 ? -0.0L : i == 9 ? 5 : ld;
		h = (struct holder){.tag = 't', .w = wide(), .u = (uwide_t)wide(), .ld = -ld};
		const int n = (int)any(), last = (int)any();
		printf("{");
		print("a", a);
		print("b_w", b.w);
		print("stacked", (wide_t)stacked);
		print("h_w", h.w);
		print("h_u", (wide_t)h.u);
		const wide_t result = work(&h, a, n, b, ld, stacked, last, i);
		print("retval", result);
		print("global", (wide_t)global);
		printf("\"n\":%d,\"last\":%d,\"ld\":\"%La\",\"h_ld\":\"%La\",\"real\":\"%La\",\"half\":\"%La\"}\n", n, last, ld, h.ld, ld / 3,
		       half_of(ld));
		breathe(i);
	}
	return 0;
}
