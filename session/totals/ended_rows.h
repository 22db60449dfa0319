/* SPDX-License-Identifier: MIT */
/*
 * What processes counted that have ended: one row for each probe and key, however many processes had it. The memory is limited,
 * because keys are the programs' own: a row that finds no room is refused.
 */
#ifndef DP_SESSION_TOTALS_ENDED_ROWS_H
#define DP_SESSION_TOTALS_ENDED_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dp_row_key {
	uint64_t group; /* of processes that share a row; 0: all do */
	uint64_t probe;
	uint64_t keyed; /* 0: the row of the probe itself */
	uint64_t key;
};

struct dp_ended_row {
	struct dp_row_key key;
	uint64_t unpaired, crowded;
	uint64_t *cells; /* as many as each row has */
};

struct dp_ended_rows; /* opaque */
/* `cells`: of a row. `most`: bytes of all rows, about. NULL: out of memory. */
struct dp_ended_rows *dp_ended_rows_create(unsigned cells, size_t most);
struct dp_ended_rows *dp_ended_rows_destroy(struct dp_ended_rows *rows);
/* Finds the row, or adds it with cells of 0. NULL: no room. */
struct dp_ended_row *dp_ended_rows_get(struct dp_ended_rows *rows, const struct dp_row_key *key);
/* Calls `each` for all rows until it returns false. */
bool dp_ended_rows_each(const struct dp_ended_rows *rows, bool (*each)(const struct dp_ended_row *row, void *data), void *data);

#endif
