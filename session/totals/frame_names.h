/* SPDX-License-Identifier: MIT */
/*
 * Backtraces of several processes. Addresses differ from process to process, and mean nothing once a process has ended; names do
 * not. So each backtrace is stored by the names of its frames, which are formed while the process's image is there, once for each
 * place of a file. Equal names are one backtrace.
 */
#ifndef DP_SESSION_TOTALS_FRAME_NAMES_H
#define DP_SESSION_TOTALS_FRAME_NAMES_H

#include "output/aggregations/aggregations.h"

struct dp_frame_names;                              /* opaque */
struct dp_frame_names *dp_frame_names_create(void); /* NULL: out of memory */
struct dp_frame_names *dp_frame_names_destroy(struct dp_frame_names *names);

struct dp_frames_seen {
	const uint64_t *frame; /* innermost first, as the agent writes them */
	unsigned n, most;      /* most: with as many frames, callers may be missing */
};
/* The number of a backtrace, from 1; 0: out of memory, or there are too many already. */
uint64_t dp_frame_names_number(struct dp_frame_names *names, struct dp_image *image, const struct dp_frames_seen *seen);
/* Valid until the names are destroyed. */
const struct dp_agg_stack *dp_frame_names_get(const struct dp_frame_names *names, uint64_t number);

#endif
