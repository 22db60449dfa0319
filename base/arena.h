/* SPDX-License-Identifier: MIT */
/* An arena: many small allocations, freed together. */
#ifndef DP_BASE_ARENA_H
#define DP_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct dp_arena {
	struct dp_arena_chunk *chunk;
	size_t total;
	bool failed; /* out of memory, or over TOTAL_MAX, which no sane input reaches */
};

/* Returns `n` zero bytes, aligned for any type. NULL on failure, which also sets `failed`. */
void *dp_arena_alloc(struct dp_arena *a, size_t n);
char *dp_arena_copy(struct dp_arena *a, const char *text, size_t n);
char *dp_arena_printf(struct dp_arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void dp_arena_fini(struct dp_arena *a);

#endif
