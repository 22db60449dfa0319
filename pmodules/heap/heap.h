/* SPDX-License-Identifier: MIT */
/*
 * Blocks of glibc's malloc that nothing points to any more. Finds the chunks of all arenas by their headers, then marks from the
 * roots (registers, stacks, writable data): any aligned word that leads to or into a block, and on from there. What stays
 * unmarked is a leak candidate.
 *
 * It must see one moment: a copy or a core. It reads past the saved pages, so nothing of this gets into the snapshot's file.
 */
#ifndef DP_PMODULES_HEAP_HEAP_H
#define DP_PMODULES_HEAP_HEAP_H

#include "base/arena.h"
#include "pmodules/pmodule.h"
#include "pmodules/source/stopped.h"

struct dp_heap_memory { /* a process's memory at one moment */
	/* Returns the number of leading bytes. */
	size_t (*read)(uint64_t addr, void *buf, size_t n, void *data);
	/* The first run of pages from *from on, below `end`, that may hold something other than zeros; NULL: all may. */
	bool (*filled)(uint64_t *from, uint64_t end, uint64_t *to, void *data);
	/* Is the time up? Then nothing is known. */
	bool (*over)(void *data);
	void *data;
	const struct dp_image *image; /* its mappings */
	const uint64_t *word;         /* the registers of all threads */
	size_t nwords;
	const uint64_t *sp; /* their stack pointers: what is below is not in use */
	size_t nsp;
};

/* Texts and groups are in `arena`. ret->why says why nothing is known. */
void dp_heap_survey(const struct dp_heap_memory *m, struct dp_arena *arena, struct pmodule_heap *ret);
/* The same for a snapshot's source: mode fork or a core. `over` as above. */
void dp_heap_survey_stopped(struct dp_stopped *s, bool (*over)(void *data), void *data, struct dp_arena *arena,
                            struct pmodule_heap *ret);

#endif
