/* SPDX-License-Identifier: MIT */
/* The parts of the summary's text. */
#ifndef DP_OUTPUT_REPORTS_SUMMARY_TABLE_H
#define DP_OUTPUT_REPORTS_SUMMARY_TABLE_H

#include "output/format/put.h"
#include "output/reports/summary.h"

enum { DP_SUMMARY_LISTED = 20 }; /* rows of a list */

#define DP_SUMMARY_GOOD "\033[32m"
#define DP_SUMMARY_BAD  "\033[1;31m"

struct dp_summary_out {
	struct dp_buf b;
	bool color;
	size_t width;   /* of names in tables */
	unsigned ended; /* processes of the row without a pid */
};

/* How wide names may be there. */
size_t dp_summary_width(FILE *to);
/* Different probes and processes; and of these, those that have ended and are one row. */
size_t dp_summary_probes(const struct dp_summary *s);
size_t dp_summary_processes(const struct dp_summary *s);
unsigned dp_summary_ended(const struct dp_summary *s);

void dp_summary_colored(struct dp_summary_out *o, const char *color, const char *text);
/* 0: "3 ended", processes that have a row together. */
void dp_summary_put_pid(struct dp_summary_out *o, pid_t pid);
/* Untrusted text, first line only, padded to `width` characters. */
void dp_summary_cell(struct dp_summary_out *o, const char *text, size_t width);
/* Are its probes in several processes? */
bool dp_summary_has_targets(const struct dp_summary *s);
size_t dp_summary_smaller(size_t a, size_t b);
void dp_summary_put_tables(struct dp_summary_out *o, const struct dp_summary *s);

#endif
