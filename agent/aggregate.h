/* SPDX-License-Identifier: MIT */
/* Cells of aggregations: counts instead of records. */
#ifndef DP_AGENT_AGGREGATE_H
#define DP_AGENT_AGGREGATE_H

#include "agent/agent.h"

struct dp_cells {        /* returned in rax and rdx */
	uint64_t at;     /* a block, or one key's cells; 0: the hit is lost, and counted */
	uint64_t shared; /* 1: other threads write there too */
};

#define DP_AGG_MIX UINT64_C(0x9e3779b97f4a7c15)

/* Called by dp_thunk_cells and dp_thunk_keyed. A descriptor with stack_words has the address of such words in `key`. */
struct dp_cells dp_agg_cells(const struct dp_probe_desc *desc);
struct dp_cells dp_agg_keyed(const struct dp_probe_desc *desc, uint64_t key);
/* `stack`: the number of frames, then the frames; or NULL. */
struct dp_cells dp_agg_find(const struct dp_probe_desc *desc, uint64_t key, const uint64_t *stack);
/* Of a key of words: their number, then the words. */
uint64_t dp_agg_hash(const uint64_t *words);
/*
 * Copies the values of a key, as the stub gives them, and the strings among them, behind words[0]. Returns how many words the
 * strings have; there is room for DP_AGG_TEXT_WORDS.
 */
uint64_t dp_agg_texts(const struct dp_probe_desc *desc, const uint64_t *given, uint64_t *words);
/* Counts a hit in a child that is not followed. */
void dp_agg_lose_forked(const struct dp_probe_desc *desc);

extern const struct dp_decimal dp_agent_decimal __attribute__((visibility("default")));
DP_EXPORT void dp_agent_stacked(struct dp_capture *capture, const struct dp_op *op);
DP_EXPORT void dp_agent_stacked_apart(struct dp_capture *capture, const struct dp_op *op);
DP_EXPORT void dp_agent_stacked_done(struct dp_capture *capture);

#endif
