/* SPDX-License-Identifier: MIT */
/* The rules of one range of code as they are compiled: ascending (offset, rule) pairs. Each distinct rule is stored once. */
#ifndef DP_PROBES_UNWIND_UNWIND_ROWS_H
#define DP_PROBES_UNWIND_UNWIND_ROWS_H

#include "agent/unwind/unwind.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dp_unwind_rows {
	uint32_t *pc;  /* offsets at which a rule starts to apply */
	uint16_t *row; /* index into `rule` */
	size_t n, cap;
	struct dp_unwind_row *rule; /* [0] is DP_UNWIND_NONE */
	size_t nrules, cap_rules;
	uint32_t *hash; /* index + 1 of a rule, open addressing */
	size_t nhash;
	bool failed; /* out of memory */
};

void dp_unwind_rows_init(struct dp_unwind_rows *rows);
void dp_unwind_rows_fini(struct dp_unwind_rows *rows);
/* Returns the index of `rule`; 0 if there are too many rules or memory is out (sets `failed`). */
uint16_t dp_unwind_rows_intern(struct dp_unwind_rows *rows, const struct dp_unwind_row *rule);
/* Lets `row` apply from `pc` on. Replaces a pair with the same offset; ignores offsets below the last one. */
void dp_unwind_rows_add(struct dp_unwind_rows *rows, uint32_t pc, uint16_t row);
/* Makes room for `n` pairs, so that the caller can fill pc[] and row[] directly. */
bool dp_unwind_rows_reserve(struct dp_unwind_rows *rows, size_t n);

#endif
