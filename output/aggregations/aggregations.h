/* SPDX-License-Identifier: MIT */
/* Aggregations for users: tables and histograms, NDJSON, folded stacks for flame graphs, metrics for a monitoring system. */
#ifndef DP_OUTPUT_AGGREGATIONS_AGGREGATIONS_H
#define DP_OUTPUT_AGGREGATIONS_AGGREGATIONS_H

#include "base/buf.h"
#include "probes/point/source/source_lines.h"
#include "probes/probes.h"
#include "trampoline/trampoline.h"

#include <stdio.h>
#include <sys/types.h>

struct dp_agg_frame {                  /* the names of a frame */
	const char *symbol, *readable; /* as dp_frame_describe() writes it */
	const char *function;
	bool by_pointer;
	struct dp_source_at at; /* path: NULL if it is in no file */
};
struct dp_agg_stack {
	const struct dp_agg_frame *const *frame;
	unsigned n;
	bool cut; /* there are more callers */
};

struct dp_agg_part {       /* one aggregation of a run */
	unsigned what;     /* bits of enum dp_agg_what */
	unsigned hidden;   /* of them, those that nobody asked for: only a histogram's _sum comes from them (metrics) */
	bool average;      /* --avg: from the sum */
	const char *value; /* the expression as typed; NULL: hits are counted */
	int64_t low;       /* of a linear histogram */
	uint64_t step;
	uint32_t buckets;
};
/* Words of the part's cells; those of a row are the parts' one after the other. */
unsigned dp_agg_part_words(const struct dp_agg_part *part);
bool dp_agg_is_histogram(const struct dp_agg_part *part);
/* Are its values durations? */
bool dp_agg_is_ns(const struct dp_agg_part *part);
/* Sums, minima or maxima? Those of one expression are one part. */
bool dp_agg_is_statistics(const struct dp_agg_part *part);

enum dp_key_kind {
	DP_KEY_VALUE, /* of an expression */
	DP_KEY_STACK,
	DP_KEY_CALLER, /* the function that called, by name */
	DP_KEY_PID,    /* this and the next two: of the process */
	DP_KEY_COMM,
	DP_KEY_EXE,
	DP_KEY_TEXT, /* a string */
};
#define DP_KEYS_MOST DP_AGG_KEYS
struct dp_key_asked {
	enum dp_key_kind kind;
	char *text;     /* as typed */
	unsigned depth; /* of a backtrace */
	uint64_t most;  /* characters of str() */
};
struct dp_key_shown { /* one of a row's keys, as it was asked */
	int64_t number;
	const char *word;                 /* the key as a text, or NULL */
	bool is_null;                     /* a pointer that is NULL, not the word */
	const struct dp_agg_stack *stack; /* or NULL */
};

struct dp_agg_row {               /* for one probe, or for one of its keys */
	const char *name, *title; /* title: as people read it, or NULL */
	pid_t pid;                /* 0: of several processes */
	const char *comm;         /* the name of that process, or NULL */
	bool keyed;
	uint64_t key;
	const char *word; /* the key as a text, or NULL */
	/* The key as a backtrace of one process, innermost first, and what names its frames; or NULL */
	const uint64_t *frames;
	unsigned nframes;
	bool cut; /* there are more callers */
	struct dp_image *image;
	const struct dp_agg_stack *stack; /* instead: a backtrace that several processes may share; or NULL */
	const struct dp_key_shown *keys;  /* instead of all that: several keys; or NULL */
	size_t nkeys;
	const uint64_t *cells;
	uint64_t hits;
	uint64_t unpaired, crowded; /* lost; only in the row without a key */
};

enum dp_aggs_rank { DP_RANK_HITS, DP_RANK_SUM, DP_RANK_AVERAGE, DP_RANK_MIN, DP_RANK_MAX };

struct dp_aggs_shown {
	const struct dp_agg_part *part; /* rows are sorted by the first */
	size_t nparts;
	const char *by;                     /* as typed, or NULL */
	const char *hits_title, *sum_title; /* heads of these columns; NULL: hits, sum */
	bool nameless;                      /* the rows are of one thing: their keys are enough */
	const struct dp_key_asked *key;
	size_t nkeys;
	bool pids;                       /* rows of several processes */
	bool delta;                      /* only what came since the last report */
	bool rate;                       /* also what came per second */
	size_t top;                      /* rows to show; 0: all */
	unsigned width;                  /* columns of the terminal; 0: no terminal */
	double seconds;                  /* length of the period */
	struct dp_source_lines *sources; /* where source lines of frames are asked for, or NULL */
	const struct dp_agg_row *row;    /* greatest first */
	size_t n;
};

/* Number of hits in a part's cells. */
uint64_t dp_agg_hits(const struct dp_agg_part *part, const uint64_t *cells);
/* A part's cells in those of the row. */
const uint64_t *dp_agg_cells_of(const struct dp_aggs_shown *a, const struct dp_agg_row *row, size_t part);
/* The part with the sum of the values that part number `histogram` has, or NULL. */
const struct dp_agg_part *dp_agg_sum_of(const struct dp_agg_part *part, size_t nparts, size_t histogram);
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

/* Asks for the source lines of all frames to be shown, and waits for them for a while. */
void dp_aggs_look_up(const struct dp_aggs_shown *a);
struct dp_source dp_agg_source(const struct dp_aggs_shown *a, const struct dp_agg_row *row, unsigned i);

/* Bounds of a histogram's bucket: [*from, *to); INT64_MIN or INT64_MAX where it is open. */
void dp_agg_bucket(const struct dp_agg_part *part, unsigned i, int64_t *from, int64_t *to);
/* The number of the bucket that is at place `i` by its values: the one below 0 comes first. */
unsigned dp_agg_bucket_in_order(const struct dp_agg_part *part, unsigned i);
/*
 * A percentile, estimated: within a bucket values are taken to be spread evenly. `open` < 0: it is below `value`, where a linear
 * histogram begins; > 0: at or above it, where that ends. False: no hits.
 */
struct dp_percentile {
	double value;
	int open;
};
bool dp_agg_percentile(const struct dp_agg_part *part, const uint64_t *cells, unsigned percent, struct dp_percentile *ret);
#define DP_AGG_PERCENTILES ((const unsigned[]){50, 90, 99})
enum { DP_AGG_NPERCENTILES = 3 };

/* Sorts the greatest first and those without a hit last; equal ones by hits, name, several keys, and the address of their cells.
 */
void dp_aggs_sort(struct dp_agg_row *row, size_t n, enum dp_aggs_rank rank);

void dp_aggs_text(const struct dp_aggs_shown *a, FILE *to);
void dp_aggs_json(const struct dp_aggs_shown *a, FILE *to);
/* Metrics for Prometheus, all rows; not for keys that are backtraces. */
void dp_aggs_metrics(const struct dp_aggs_shown *a, FILE *to);
/* "main;foo;bar 12": hits, or with DP_AGG_SUM the sum */
void dp_aggs_folded(const struct dp_aggs_shown *a, FILE *to);

#endif
