/* SPDX-License-Identifier: MIT */
/* The rules of one stretch of code as they are compiled: (offset, rule) pairs in ascending order, each distinct rule kept once.
 */
#ifndef DP_PROBES_UNWIND_ROWS_H
#define DP_PROBES_UNWIND_ROWS_H

#include "agent/unwind/unwind.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dp_unwind_rows {
	uint32_t *pc;  /* offsets where a rule begins to hold */
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
/* The index of `rule`; 0 when there are too many (or `failed`). */
uint16_t dp_unwind_rows_intern(struct dp_unwind_rows *rows, const struct dp_unwind_row *rule);
/* `row` holds from `pc` on. Replaces what began at the same place; offsets below the last one are ignored. */
void dp_unwind_rows_add(struct dp_unwind_rows *rows, uint32_t pc, uint16_t row);
/* Makes room for `n` pairs, so that the caller may fill pc[] and row[] itself. */
bool dp_unwind_rows_reserve(struct dp_unwind_rows *rows, size_t n);

#endif
