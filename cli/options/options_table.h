/* SPDX-License-Identifier: MIT */
/*
 * One table of options for all verbs. It feeds getopt_long(), --help and the shell completion. Most options only store their
 * argument: their row says where (options_typed.c). The others have a function of their own.
 */
#ifndef DP_CLI_OPTIONS_OPTIONS_TABLE_H
#define DP_CLI_OPTIONS_OPTIONS_TABLE_H

#include "cli/options/options_probe.h"

struct dp_option_row;
struct dp_parser {
	enum dp_verb verb;
	struct dp_options o;
	struct dp_probe_args probes;
	const struct dp_option_row *row; /* of the current option */
	char option[24];                 /* the current option for messages: "--sum", or "-e" if it has a letter */
};

typedef struct dp_error *dp_option_taker(struct dp_parser *p, const char *arg);

struct dp_option_row {
	const char *name;
	char letter;
	const char *metavar; /* NULL: no argument; "[=N]" and "[WORD]": may have one (options.c) */
	const char *help;
	unsigned verbs; /* bit 1 << verb: which of them take it */
	dp_option_taker *take;
	size_t to, size;      /* of the destination in struct dp_options */
	uint64_t value;       /* stored if there is no argument; of words: the value of the first */
	uint64_t least, most; /* of a number; 0: no limit */
	const char *range;    /* what the option takes, for a number outside; NULL: the message names `most` */
	const char *word[6];  /* NULL-terminated; what dp_option_word() takes */
	bool events;          /* the user wants the events: sets trace.own_events */
};

#define DP_WAIT_MOST_NS UINT64_C(600000000000) /* --max-wait: as the agent's DP_LOADED_MOST_NS */

#define DP_OPTION_ROWS 126u
extern const struct dp_option_row dp_option_rows[DP_OPTION_ROWS];

struct dp_verb_text {
	const char *word;  /* NULL: a run in the foreground */
	const char *usage; /* behind "dynprobe " */
	const char *line;  /* in the list of verbs */
	const char *about; /* between usage and options */
};
const struct dp_verb_text *dp_verb_text(enum dp_verb verb);

static inline bool dp_option_of(const struct dp_option_row *row, enum dp_verb verb)
{
	return row->verbs >> verb & 1u;
}

/* options_typed.c: each stores what the row says. */
dp_option_taker dp_option_value; /* row->value: flags */
dp_option_taker dp_option_text;
dp_option_taker dp_option_pid; /* 12,14 or a name; adds to trace.pid */
/* The processes of such a list; those that are in the spec already count once. */
struct dp_error *dp_pids_add(struct dp_trace_spec *trace, const char *list) DP_MUST_CHECK;
dp_option_taker dp_option_cgroup;                    /* the processes of a control group */
dp_option_taker dp_option_container, dp_option_user; /* those of a container, of a user */
dp_option_taker dp_option_name;                      /* text that is not empty */
dp_option_taker dp_option_word;                      /* the number of one of row->word, counted from row->value */
dp_option_taker dp_option_number;
dp_option_taker dp_option_size;
dp_option_taker dp_option_duration;
dp_option_taker dp_option_calls;
dp_option_taker dp_option_milliseconds; /* unless the argument has another unit */
dp_option_taker dp_option_list;         /* struct dp_word_list */
dp_option_taker dp_option_names;        /* the same, of words that are not empty */
dp_option_taker dp_option_tids;         /* struct dp_tid_list */

/* options_probe.c */
dp_option_taker dp_option_probe; /* --probe (row->value DP_POINT_PLACE), --function (ENTRY), --return (RETURN); may be @FILE */
dp_option_taker dp_option_all;   /* a probe for every process */
dp_option_taker dp_option_usdt, dp_option_syscall, dp_option_event_name, dp_option_context, dp_option_when;

/* options_aggregations.c */
dp_option_taker dp_option_aggregation, dp_option_hist, dp_option_by;
/* What aggregations exclude. */
struct dp_error *dp_aggs_check(enum dp_verb verb, struct dp_options *o) DP_MUST_CHECK;

/* --flame: what it implies, and what it excludes. */
struct dp_error *dp_flame_check(struct dp_options *o) DP_MUST_CHECK;
struct dp_error *dp_flame_verb_check(const struct dp_options *o) DP_MUST_CHECK;
/* The rules that hold wherever there are aggregations. */
struct dp_error *dp_aggs_check_asked(const struct dp_asked *a) DP_MUST_CHECK;
dp_option_taker dp_option_view_format;
struct dp_error *dp_changes_check(const struct dp_options *o) DP_MUST_CHECK; /* --changes, of a run */
struct dp_error *dp_view_check(struct dp_options *o) DP_MUST_CHECK;

/* options_snapshot.c */
dp_option_taker dp_option_kv, dp_option_lua_allow, dp_option_show_frame, dp_option_show_var, dp_option_show_all;
struct dp_error *dp_snapshots_check(enum dp_verb verb, struct dp_options *o) DP_MUST_CHECK;
struct dp_error *dp_show_check(const struct dp_options *o) DP_MUST_CHECK;
struct dp_error *dp_report_check(const struct dp_options *o) DP_MUST_CHECK;

/* options_profile.c: what --profile excludes. */
struct dp_error *dp_profile_check(struct dp_options *o) DP_MUST_CHECK;

/* help/nearest.c: words that mean nothing, and what was probably meant. */
struct dp_error *dp_option_unknown(enum dp_verb verb, const char *word) DP_MUST_CHECK;
struct dp_error *dp_command_unknown(const char *word) DP_MUST_CHECK;
struct dp_error *dp_word_unexpected(enum dp_verb verb, const char *word) DP_MUST_CHECK;

/* Refuses options that exclude each other; fills in implied ones. */
struct dp_error *dp_options_check(enum dp_verb verb, struct dp_options *o) DP_MUST_CHECK;

#endif
