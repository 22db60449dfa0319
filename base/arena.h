/* SPDX-License-Identifier: MIT */
/* Memory that is given back all at once: what a scope makes while it gives texts their meaning. */
#ifndef DP_PROBES_ARENA_H
#define DP_PROBES_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct dp_arena {
	struct dp_arena_chunk *chunk;
	size_t total;
	bool failed; /* out of memory, or a text asked for more than any text needs */
};

/* `n` zero bytes, aligned for anything; NULL (and `failed`) if there are none. */
void *dp_arena_alloc(struct dp_arena *a, size_t n);
char *dp_arena_copy(struct dp_arena *a, const char *text, size_t n);
char *dp_arena_printf(struct dp_arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void dp_arena_fini(struct dp_arena *a);

#endif
