/* SPDX-License-Identifier: MIT */
/* Arena memory is zeroed, aligned and not shared, whether it is small or large; and it has a limit. */
#include "base/arena.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

enum { N = 200000, SIZE = 100 };
static unsigned char *part[N];

Test(arena, parts_are_zero_aligned_and_apart)
{
	struct dp_arena a = {0};
	static const unsigned char zero[SIZE];
	for (size_t i = 0; i < N; i++) {
		part[i] = dp_arena_alloc(&a, SIZE);
		cr_assert(part[i] && (uintptr_t)part[i] % 16 == 0 && !memcmp(part[i], zero, SIZE));
		memset(part[i], (int)(i % 251 + 1), SIZE);
	}
	for (size_t i = 0; i < N; i++)
		for (size_t k = 0; k < SIZE; k++)
			cr_assert(part[i][k] == i % 251 + 1);
	cr_assert(a.total >= (size_t)N * SIZE && a.total < (size_t)N * SIZE * 5 / 4 + (4u << 20));
	unsigned char *large = dp_arena_alloc(&a, 10u << 20);
	cr_assert(large);
	memset(large, 1, 10u << 20);
	dp_arena_fini(&a);
	cr_assert(!a.chunk && !a.total);
}

Test(arena, it_has_an_end_that_is_told)
{
	struct dp_arena a = {0};
	size_t n = 0;
	while (dp_arena_alloc(&a, 1u << 18))
		n++;
	cr_assert(a.failed && a.total <= 256u << 20 && n > 800, "%zu", n);
	dp_arena_fini(&a);
	dp_arena_fini(&a);
}
