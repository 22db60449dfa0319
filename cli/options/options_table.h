/* SPDX-License-Identifier: MIT */
/* One table of options for all verbs: it is what getopt_long() is fed with, what --help prints and what the shell completion
 * knows. */
#ifndef DP_CLI_OPTIONS_TABLE_H
#define DP_CLI_OPTIONS_TABLE_H

#include "cli/options/options_probe.h"

struct dp_parser {
	enum dp_verb verb;
	struct dp_options o;
	struct dp_probe_args probes;
};

struct dp_option_row {
	const char *name;
	char letter;
	const char *metavar; /* NULL: no argument; "[=...]": may have one */
	const char *help;
	unsigned verbs; /* bit 1 << verb: which of them take it */
	struct dp_error *(*take)(struct dp_parser *p, const char *arg);
};

#define DP_OPTION_ROWS 91u
extern const struct dp_option_row dp_option_rows[DP_OPTION_ROWS];

static inline bool dp_option_of(const struct dp_option_row *row, enum dp_verb verb)
{
	return row->verbs >> verb & 1u;
}

/* options_answers.c */
struct dp_error *dp_take_count(struct dp_parser *p, const char *arg);
struct dp_error *dp_take_hist(struct dp_parser *p, const char *arg);
struct dp_error *dp_take_sum(struct dp_parser *p, const char *arg);
struct dp_error *dp_take_avg(struct dp_parser *p, const char *arg);
struct dp_error *dp_take_min(struct dp_parser *p, const char *arg);
struct dp_error *dp_take_max(struct dp_parser *p, const char *arg);
struct dp_error *dp_take_by(struct dp_parser *p, const char *arg);
struct dp_error *dp_take_slower(struct dp_parser *p, const char *arg);
struct dp_error *dp_take_interval(struct dp_parser *p, const char *arg);
struct dp_error *dp_take_top(struct dp_parser *p, const char *arg);
struct dp_error *dp_take_folded(struct dp_parser *p, const char *arg);
/* What goes with answers and what does not. */
struct dp_error *dp_answers_check(enum dp_verb verb, struct dp_options *o) DP_MUST_CHECK;

/* options_triggered.c */
struct dp_error *dp_take_snapshot(struct dp_parser *p, const char *arg);
struct dp_error *dp_take_max_snapshots(struct dp_parser *p, const char *arg);
struct dp_error *dp_take_snapshot_interval(struct dp_parser *p, const char *arg);
struct dp_error *dp_snapshots_check(enum dp_verb verb, struct dp_options *o) DP_MUST_CHECK;

/* options_show.c */
struct dp_error *dp_take_json(struct dp_parser *p, const char *arg);
struct dp_error *dp_take_show_thread(struct dp_parser *p, const char *arg);
struct dp_error *dp_take_show_frame(struct dp_parser *p, const char *arg);
struct dp_error *dp_take_show_var(struct dp_parser *p, const char *arg);
struct dp_error *dp_take_show_registers(struct dp_parser *p, const char *arg);
struct dp_error *dp_take_show_maps(struct dp_parser *p, const char *arg);
struct dp_error *dp_take_show_files(struct dp_parser *p, const char *arg);
struct dp_error *dp_take_show_limits(struct dp_parser *p, const char *arg);
struct dp_error *dp_take_show_all(struct dp_parser *p, const char *arg);
struct dp_error *dp_show_check(const struct dp_options *o) DP_MUST_CHECK;
struct dp_error *dp_report_check(const struct dp_options *o) DP_MUST_CHECK;

/* options_tactics.c */
struct dp_error *dp_take_tactic(struct dp_parser *p, const char *arg);

/* options_profile.c: what --profile excludes. */
struct dp_error *dp_profile_check(struct dp_options *o) DP_MUST_CHECK;

/* What excludes what; fills in what one option implies of another. */
struct dp_error *dp_options_check(enum dp_verb verb, struct dp_options *o) DP_MUST_CHECK;

#endif
