/* SPDX-License-Identifier: MIT */
/* Aggregations for users: tables and histograms, NDJSON, folded stacks for flame graphs. */
#ifndef DP_OUTPUT_REPORTS_AGGREGATIONS_H
#define DP_OUTPUT_REPORTS_AGGREGATIONS_H

#include "base/buf.h"
#include "probes/probes.h"
#include "trampoline/trampoline.h"

#include <stdio.h>
#include <sys/types.h>

struct dp_agg_frame {                  /* the names of a frame */
	const char *symbol, *readable; /* as dp_frame_describe() writes it */
	const char *function;
	bool by_pointer;
};
struct dp_agg_stack {
	const struct dp_agg_frame *const *frame;
	unsigned n;
	bool cut; /* there are more callers */
};

struct dp_agg_row {               /* for one probe, or for one of its keys */
	const char *name, *title; /* title: as people read it, or NULL */
	pid_t pid;                /* 0: of several processes */
	bool keyed;
	uint64_t key;
	const char *word; /* the key as a text, or NULL */
	/* The key as a backtrace of one process, innermost first, and what names its frames; or NULL */
	const uint64_t *frames;
	unsigned nframes;
	bool cut; /* there are more callers */
	struct dp_image *image;
	const struct dp_agg_stack *stack; /* instead: a backtrace that several processes may share; or NULL */
	const uint64_t *cells;
	uint64_t hits;
	uint64_t unpaired, crowded; /* lost; only in the row without a key */
};

enum dp_aggs_rank { DP_RANK_HITS, DP_RANK_SUM, DP_RANK_AVERAGE, DP_RANK_MIN, DP_RANK_MAX };

struct dp_aggs_shown {
	unsigned what; /* enum dp_agg_what */
	bool average;
	const char *value, *by; /* as typed, or NULL */
	bool ns;                /* values are durations */
	bool pids;              /* rows of several processes */
	bool delta;             /* only what came since the last report */
	int64_t low;
	uint64_t step;
	uint32_t buckets;
	size_t top;                   /* rows to show; 0: all */
	double seconds;               /* length of the period */
	const struct dp_agg_row *row; /* greatest first */
	size_t n;
};

/* Number of hits in these cells. */
uint64_t dp_agg_hits(unsigned what, const uint64_t *cells, unsigned words);
/* The minimum and maximum that cells encode. */
int64_t dp_agg_max_of(uint64_t cell);
int64_t dp_agg_min_of(uint64_t cell);
#define DP_AGG_NAME 4096u
/* A row's frames, whoever names them. pc 0: of several processes. `text` is used if the name must be formed now. */
struct dp_agg_frame_shown {
	uint64_t pc;
	const char *name;
	bool by_pointer;
};
enum dp_agg_name { DP_AGG_SYMBOL, DP_AGG_READABLE, DP_AGG_FUNCTION };
bool dp_agg_is_stack(const struct dp_agg_row *row);
unsigned dp_agg_depth(const struct dp_agg_row *row);
bool dp_agg_is_cut(const struct dp_agg_row *row);
struct dp_agg_frame_shown dp_agg_frame(const struct dp_agg_row *row, unsigned i, enum dp_agg_name name, char text[DP_AGG_NAME]);

/* Bounds of a histogram's bucket: [*from, *to); INT64_MIN or INT64_MAX where it is open. */
void dp_agg_bucket(const struct dp_aggs_shown *a, unsigned i, int64_t *from, int64_t *to);
unsigned dp_agg_nbuckets(const struct dp_aggs_shown *a);

/* Sorts the greatest first and those without a hit last; equal ones by hits, by name, and then by the address of their cells. */
void dp_aggs_sort(struct dp_agg_row *row, size_t n, enum dp_aggs_rank rank);

void dp_aggs_text(const struct dp_aggs_shown *a, FILE *to);
void dp_aggs_json(const struct dp_aggs_shown *a, FILE *to);
/* "main;foo;bar 12": hits, or with DP_AGG_SUM the sum */
void dp_aggs_folded(const struct dp_aggs_shown *a, FILE *to);

#endif
