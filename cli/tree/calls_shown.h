/* SPDX-License-Identifier: MIT */
/* --calls and --self: the tree of calls instead of events. In other runs there is none, and all of these do nothing. */
#ifndef DP_CLI_TREE_CALLS_SHOWN_H
#define DP_CLI_TREE_CALLS_SHOWN_H

#include "cli/options/options.h"
#include "output/aggregations/redraw.h"
#include "output/output.h"

struct dp_calls_shown; /* opaque */
/* When the probes are known. Borrows all; *ret is NULL in other runs. `drawn`: what is drawn on the terminal. */
struct dp_error *dp_calls_open(const struct dp_options *options, const struct dp_trace_spec *trace, FILE *to,
                               struct dp_drawn *drawn, struct dp_calls_shown **ret) DP_MUST_CHECK;
void dp_calls_close(struct dp_calls_shown *c);
void dp_calls_batch(struct dp_calls_shown *c, const struct dp_event_batch *batch);
/* Hits lost so far. */
void dp_calls_lost(struct dp_calls_shown *c, uint64_t lost);
/* Shows the tree when --interval has passed; when the run has ended. `seconds` since the probes are there. */
void dp_calls_round(struct dp_calls_shown *c, double seconds);
void dp_calls_final(struct dp_calls_shown *c, double seconds);
/* Own times by path, for a flame graph, and what they are of: "own time of calls below worker". */
void dp_calls_folded(const struct dp_calls_shown *c, FILE *to);
void dp_calls_title(const struct dp_calls_shown *c, struct dp_buf *b);

#endif
