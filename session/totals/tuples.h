/* SPDX-License-Identifier: MIT */
/*
 * Keys of several parts, and words, as numbers: equal ones have the same number, in whatever process they were seen. The memory
 * is limited, because keys are the programs' own.
 */
#ifndef DP_SESSION_TOTALS_TUPLES_H
#define DP_SESSION_TOTALS_TUPLES_H

#include "session/totals/frame_names.h"

struct dp_tuples; /* opaque */
/* Of `n` parts each. NULL: out of memory. */
struct dp_tuples *dp_tuples_create(size_t n);
struct dp_tuples *dp_tuples_destroy(struct dp_tuples *t);
/* From 1; 0: no room. */
uint64_t dp_tuples_number(struct dp_tuples *t, const uint64_t *part);
const uint64_t *dp_tuples_get(const struct dp_tuples *t, uint64_t number);
uint64_t dp_tuples_word(struct dp_tuples *t, const char *word);
/* In place of a word: a pointer that is NULL. No word has its number. */
uint64_t dp_tuples_null(struct dp_tuples *t);
const char *dp_tuples_word_get(const struct dp_tuples *t, uint64_t number);
/* The number of the function that called, as a word; of a frame: its pc and the return address. */
uint64_t dp_tuples_caller(struct dp_tuples *t, struct dp_image *image, const uint64_t frame[2]);
/* Those of backtraces. */
struct dp_frame_names *dp_tuples_names(struct dp_tuples *t);
/* What the number of a row's key stands for; valid until the tuples are destroyed. */
const struct dp_key_shown *dp_tuples_shown(struct dp_tuples *t, const struct dp_key_asked *key, uint64_t number);

#endif
