/* SPDX-License-Identifier: MIT */
/* Counts how often each stack was sampled. */
#ifndef DP_SESSION_PROFILE_STACKS_H
#define DP_SESSION_PROFILE_STACKS_H

#include "output/aggregations/aggregations.h"
#include "session/profile/images.h"

struct dp_error *dp_stacks_create(struct dp_stacks **ret) DP_MUST_CHECK;
struct dp_stack_seen {
	const uint64_t *pc;
	size_t n;
	uint32_t image; /* its number (images.h) */
	uint64_t ns;    /* of a wait: its length */
};
/* False if there is no room for another stack. */
bool dp_stacks_count(struct dp_stacks *s, const struct dp_stack_seen *seen);
/* Image `old` is dropped: its stacks move to image `number` if that has the same code. The others lose their names. */
void dp_stacks_retire(struct dp_stacks *s, uint32_t old, const struct dp_image *was, uint32_t number, const struct dp_image *is);
/* The number of samples that lost their names so. */
uint64_t dp_stacks_unnamed(const struct dp_stacks *s);
struct dp_stacks *dp_stacks_destroy(struct dp_stacks *s);

/*
 * The stacks of some processes as rows, longest time and most samples first; stacks of the same functions share a row. Refers to
 * them and their images.
 */
struct dp_stacks_of { /* one process */
	const struct dp_stacks *stacks;
	const struct dp_images *images;
};
struct dp_stack_rows {
	struct dp_agg_row *row;
	size_t n;
	struct dp_merged_stack *merged;
};
/* `pid`: 0 of several. After an error there is nothing to free. */
struct dp_error *dp_stacks_rows(const struct dp_stacks_of *of, size_t n, pid_t pid, struct dp_stack_rows *ret) DP_MUST_CHECK;
void dp_stack_rows_fini(struct dp_stack_rows *rows);

#endif
