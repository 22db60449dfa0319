/* SPDX-License-Identifier: MIT */
/* Variables that are computed nowhere: only the debug information says how to compute them, with floats and doubles too. */
#include "values.h"

/* work() does not use these variables; main() prints their values. */
#define MADE(x, y, n, c)                                                                                                         \
	const double twice = (x)*2.0 + 1.5, from_int = (n), halved = (x) / -4.0, wide = (double)(y) - (x);                       \
	const float third = (y) / 3.0f, negative = -(y), narrow = (float)(x);                                                    \
	const int whole = (int)(x), is_less = (x) < 3.0, is_same = (y) == 1.25f;                                                 \
	const unsigned byte = (unsigned char)((c) + 250), rest = (unsigned)(n) % 7u;                                             \
	const int64_t product = (int64_t)(n)*3 - (c)

static volatile double seen;

static __attribute__((noinline, noclone)) void use(const double *k)
{
	seen = k[0];
}

static __attribute__((noinline, noclone)) double work(double x, float y, int n, unsigned char c)
{
#pragma GCC diagnostic ignored "-Wunused-variable"
	MADE(x, y, n, c);
	const double k[2] = {x, y};
	use(k); /* here: LINE */
	return k[0] + x + (double)y + n + c;
}

int main(int argc, char **argv)
{
	for (int i = 0; argc > 1 && i < atoi(argv[1]); i++) {
		const int n = (int)any() >> 1;
		const unsigned char c = (unsigned char)any();
		volatile double x = (double)(int)any() / 1024;
		volatile float y = i % 3 ? (float)(int)any() / 64 : 1.25f;
		if (i % 2)
			x = n % 5;
		const double given = x;
		const float as_well = y;
		MADE(given, as_well, n, c);
		printf("{\"twice\":%.17g,\"from_int\":%.17g,\"halved\":%.17g,\"wide\":%.17g,", twice, from_int, halved, wide);
		printf("\"third\":%.17g,\"negative\":%.17g,\"narrow\":%.17g,", (double)third, (double)negative, (double)narrow);
		printf("\"whole\":%d,\"is_less\":%d,\"is_same\":%d,", whole, is_less, is_same);
		printf("\"byte\":%u,\"rest\":%u,\"product\":%" PRId64 ",", byte, rest, product);
		printf("\"result\":%.17g}\n", work(given, as_well, n, c));
		breathe(i);
	}
	return 0;
}
