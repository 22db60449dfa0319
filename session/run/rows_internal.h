/* SPDX-License-Identifier: MIT */
/* Between the files that read rows (rows.c) and show them (rows_shown.c). */
#ifndef DP_SESSION_RUN_ROWS_INTERNAL_H
#define DP_SESSION_RUN_ROWS_INTERNAL_H

#include "session/run/rows.h"
#include "session/totals/ended_rows.h"
#include "session/totals/frame_names.h"
#include "session/totals/tuples.h"

struct dp_row { /* one key of one probe */
	/* group: with --by pid the pid, with --by comm or exe the number of the word; without names, the pid of a backtrace; of
	 * several keys that are the process's own, the tuple's number (else that is the key) */
	struct dp_row_key key;
	unsigned nframes;
	uint64_t *words; /* the cells, then the frames; owned */
	uint64_t unpaired, crowded;
	unsigned site; /* the probe that was hit: of one function, several may share a row */
};

struct dp_rows {
	struct dp_row *row, *before; /* sorted; now, and at the end of the last interval */
	size_t n, capacity, nbefore;
	struct dp_cells_want want;
	struct dp_ended_rows *ended;  /* of processes that are gone; NULL: none is */
	struct dp_frame_names *names; /* of backtraces, in runs whose processes come and go; or NULL */
	struct dp_tuples *tuples;     /* of keys that are several values or a caller; or NULL */
	char **word;                  /* names and executables of processes */
	size_t nwords;
	uint64_t looked_ns, shown_ns;
	bool failed;
	/* The rows for display: */
	struct dp_agg_row *shown;
	uint64_t *cells;
};

/* In the order of the rows: <0, 0, >0. */
int dp_rows_compare(const struct dp_row *x, const struct dp_row *y, unsigned words);
/* rows_shown.c */
void dp_rows_forget_shown(struct dp_rows *a);

#endif
