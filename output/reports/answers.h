/* SPDX-License-Identifier: MIT */
/* Answers for readers: tables and histograms, NDJSON, folded stacks for flame graphs. */
#ifndef DP_OUTPUT_ANSWERS_H
#define DP_OUTPUT_ANSWERS_H

#include "base/buf.h"
#include "probes/probes.h"
#include "trampoline/trampoline.h"

#include <stdio.h>
#include <sys/types.h>

struct dp_answer_row { /* of one probe, or of one of its keys */
	const char *name;
	pid_t pid;
	bool keyed;
	uint64_t key;
	const uint64_t *frames; /* the key as a backtrace, innermost first; or NULL */
	unsigned nframes;
	bool cut; /* there are callers behind them */
	struct dp_image *image; /* names for the frames */
	const uint64_t *cells;
	uint64_t hits;
	uint64_t unpaired, crowded; /* lost; in the row without a key */
};

enum dp_answers_rank { DP_RANK_HITS, DP_RANK_SUM, DP_RANK_AVERAGE, DP_RANK_MIN, DP_RANK_MAX };

struct dp_answers_shown {
	unsigned what; /* enum dp_answer_what */
	bool average;
	const char *value, *by; /* as typed, or NULL */
	bool ns;                /* values are durations */
	bool pids;              /* of several processes */
	bool delta;             /* what came since the last time */
	int64_t low;
	uint64_t step;
	uint32_t buckets;
	size_t top;                      /* rows to show; 0: all */
	double seconds;                  /* that this is about */
	const struct dp_answer_row *row; /* the greatest first */
	size_t n;
};

/* Hits in these cells. */
uint64_t dp_answer_hits(unsigned what, const uint64_t *cells, unsigned words);
/* Minimum and maximum as they were before they went into cells. */
int64_t dp_answer_max_of(uint64_t cell);
int64_t dp_answer_min_of(uint64_t cell);
/* Bounds of a bucket of a histogram: [*from, *to), INT64_MIN and INT64_MAX where it is open. */
void dp_answer_bucket(const struct dp_answers_shown *a, unsigned i, int64_t *from, int64_t *to);
unsigned dp_answer_nbuckets(const struct dp_answers_shown *a);

/* The greatest come first, those without a hit last; equal ones by hits, by name, and then as their cells lie in memory. */
void dp_answers_sort(struct dp_answer_row *row, size_t n, enum dp_answers_rank rank);

void dp_answers_text(const struct dp_answers_shown *a, FILE *to);
void dp_answers_json(const struct dp_answers_shown *a, FILE *to);
/* "main;foo;bar 12" */
void dp_answers_folded(const struct dp_answers_shown *a, FILE *to);

#endif
