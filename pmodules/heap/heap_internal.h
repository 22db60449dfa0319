/* SPDX-License-Identifier: MIT */
/* A survey of a heap, private to heap*.c. */
#ifndef DP_PMODULES_HEAP_HEAP_INTERNAL_H
#define DP_PMODULES_HEAP_HEAP_INTERNAL_H

#include "pmodules/heap/heap.h"

#include "probes/probes.h"

#define DP_HEAP_PAGE   UINT64_C(4096)
#define DP_HEAP_ARENA  (UINT64_C(64) << 20) /* alignment and largest size of a heap of an arena other than the main one */
#define DP_HEAP_STATE  UINT64_C(0x898)      /* bytes of struct malloc_state, 2.27 to 2.41 */
#define DP_HEAP_HEADER UINT64_C(16)         /* of a chunk: the size of a free chunk before it, its own size and flags */

enum dp_heap_state { DP_HEAP_UNREACHED, DP_HEAP_REACHED, DP_HEAP_CACHED };
struct dp_heap_block {  /* a chunk that is marked as in use */
	uint64_t at;    /* of the memory that malloc returned */
	uint32_t units; /* of the chunk, 16 bytes each */
	uint8_t state;
	bool is_large;  /* it has a mapping of its own */
	bool is_within; /* another unreached block points to it */
};
struct dp_heap_region { /* a heap, or a block with a mapping of its own */
	uint64_t start, end;
	uint64_t from, walked; /* chunks are known between these */
	uint64_t top;          /* the free rest; 0: none */
	uint64_t arena;        /* its malloc_state, where it is in this heap; or 0 */
	size_t first, n;       /* its blocks */
	uint32_t *page;        /* for each page from `from` on, and the end: its first block; or NULL */
	bool is_main, is_large, is_damaged;
};
struct dp_heap_survey {
	const struct dp_heap_memory *m;
	struct dp_heap_region *region; /* ascending, as are the blocks */
	size_t nregions, region_cap;
	struct dp_heap_block *block;
	size_t nblocks, block_cap;
	uint32_t *stack; /* reached blocks whose content is still to be read */
	size_t nstack, stack_cap;
	bool failed;  /* out of memory, or more blocks than can be handled */
	bool expired; /* no time left */
	bool knows_caches, knows_fast;
	uint64_t main_arena; /* its malloc_state; 0: not found */
	struct dp_heap_page *cache;
	uint8_t *window; /* for long reads */
};

/* heap_read.c: memory through a small cache; false: not all is readable, or the time is up. */
bool dp_heap_get(struct dp_heap_survey *h, uint64_t addr, void *buf, size_t n);
bool dp_heap_is_over(struct dp_heap_survey *h);
struct dp_heap_words { /* aligned words in memory */
	uint64_t addr;
	const uint64_t *word;
	size_t n;
};
typedef void dp_heap_words_fn(struct dp_heap_survey *h, const struct dp_heap_words *w, void *data);
/* Calls `each` for what is readable and not empty of [from, end), a part at a time. */
void dp_heap_words(struct dp_heap_survey *h, uint64_t from, uint64_t end, dp_heap_words_fn *each, void *data);
/* The next part of [*from, end) that is not empty. */
bool dp_heap_filled(const struct dp_heap_survey *h, uint64_t *from, uint64_t end, uint64_t *to);

/* heap_find.c, heap_walk.c: all regions, with their blocks. */
void dp_heap_find(struct dp_heap_survey *h);
void dp_heap_walk(struct dp_heap_survey *h, struct dp_heap_region *r);
/* heap_lists.c: marks blocks that are free, but in a list whose blocks look as if they were in use. */
void dp_heap_lists(struct dp_heap_survey *h);
/* heap_mark.c: marks what is reached from the roots; then which of the others are pointed to by others. */
void dp_heap_mark(struct dp_heap_survey *h);
void dp_heap_mark_within(struct dp_heap_survey *h);
/* The block that holds this address, or NULL. */
struct dp_heap_block *dp_heap_block_at(const struct dp_heap_survey *h, uint64_t addr);
/* The block that begins there. */
struct dp_heap_block *dp_heap_block_of(const struct dp_heap_survey *h, uint64_t at);
/* heap_groups.c */
void dp_heap_report(struct dp_heap_survey *h, struct dp_arena *arena, struct pmodule_heap *ret);

const struct dp_heap_region *dp_heap_region_at(const struct dp_heap_survey *h, uint64_t addr);

static inline uint64_t dp_heap_chunk_size(const struct dp_heap_block *b)
{
	return (uint64_t)b->units * 16;
}
/* What the program may use of it. A block of its own has no neighbour whose header it extends into: 8 bytes less. */
static inline uint64_t dp_heap_size(const struct dp_heap_block *b)
{
	return dp_heap_chunk_size(b) - (b->is_large ? 16 : 8);
}
static inline bool dp_heap_is_private_data(const struct dp_map *m)
{
	return m->read && m->write && !m->shared;
}

#endif
