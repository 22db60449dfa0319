/* SPDX-License-Identifier: MIT */
/* The parsed command line. The option table (options_take.c) also feeds --help and the shell completion. */
#ifndef DP_CLI_OPTIONS_OPTIONS_H
#define DP_CLI_OPTIONS_OPTIONS_H

#include "base/cleanup.h"
#include "base/error.h"
#include "cli/options/snapshot_args.h"
#include "output/snapshot/show.h"
#include "session/trace_spec.h"

#include <sys/types.h>

#define DP_PROFILE_HZ_MAX 10000u /* --profile */

enum dp_format { DP_FORMAT_TEXT, DP_FORMAT_JSON, DP_FORMAT_CTF, DP_FORMAT_PERFETTO, DP_FORMAT_OPENMETRICS };
enum dp_color { DP_COLOR_AUTO, DP_COLOR_ALWAYS, DP_COLOR_NEVER };

/*
 * Exit statuses. 125 to 127 as env(1) has them; 121 is none of env, timeout (124), xargs (123, 124) and shells (128 and more). A
 * launched command's own status passes through.
 */
enum {
	DP_EXIT_PARTIAL = 121, /* some probes were refused, the others ran */
	DP_EXIT_FAILURE = 125, /* dynprobe itself failed; nothing was probed */
	DP_EXIT_CANNOT_RUN = 126,
	DP_EXIT_NOT_FOUND = 127,
};

/* Each verb takes its own part of the one table of options. */
enum dp_verb {
	DP_VERB_RUN, /* without a word: probes until dynprobe exits */
	DP_VERB_ATTACH,
	DP_VERB_STATUS,
	DP_VERB_ENABLE,
	DP_VERB_DISABLE,
	DP_VERB_ADD_CONTEXT,
	DP_VERB_RECORD,
	DP_VERB_REMOVE,
	DP_VERB_DETACH,
	DP_VERB_LIST,
	DP_VERB_STUBS,
	DP_VERB_SNAPSHOT,
	DP_VERB_SHOW,
	DP_VERB_REPORT,
	DP_VERB_PMODULE,
	DP_VERB_VIEW,
	DP_VERB_FLAME,
	DP_VERB_TRACES,
	DP_VERB_DOCTOR,
	DP_VERB_COUNT
};
/* "attach" and so on; NULL for DP_VERB_RUN. */
const char *dp_verb_word(enum dp_verb verb);
bool dp_verb_find(const char *word, enum dp_verb *ret);

struct dp_options {
	struct dp_trace_spec trace; /* of a run */
	const char *output;         /* -o; NULL: standard output (beside a command standard error); "-": standard output */
	const char *record;         /* --record; "": in the default place */
	size_t record_size, rotate; /* bytes; 0: no limit */
	enum dp_color color;
	enum dp_format format;
	struct dp_show_options show; /* of the verb show */
	struct dp_view_options {
		const char *when;                 /* or NULL */
		uint64_t last_ns, from_ns, to_ns; /* 0: not given */
		const char *against;              /* --against; or NULL */
		uint64_t against_ns;              /* of --against TIME; 0: it is a trace */
		bool folded;
	} view;
	const char *flame;   /* --flame: the picture of the stacks; or NULL */
	const char *title, *unit; /* of the flame graph, or NULL */
	struct dp_traces_options {
		struct dp_word_list remove; /* names, patterns, paths */
		uint64_t older_ns;          /* --older-than; 0: not given */
	} traces;
	unsigned profile_hz; /* --profile HZ; 0: not asked for */
	bool off_cpu;        /* --profile off-cpu */
	char **name;         /* arguments after the options, NULL-terminated. enable, disable, remove: names; list: [FILE] [GLOB];
	                        snapshot: [EXE]; view: [DIR...]; traces: [NAME...] */
	size_t nnames;
	const char *language; /* pmodule new --lang; NULL: lua */
	struct dp_snapshot_args snapshot;
	const char *event;    /* add-context -e */
	const char **context; /* add-context -t, checked; owned as an array */
	size_t ncontexts;
	bool once;      /* record: only buffered events */
	bool no_lines;  /* --no-lines */
	bool no_record; /* --no-record, or other options that leave the recording out */
	bool quiet, help, version, no_pager;
	const char *topic; /* --help TOPIC, or NULL */
	int verbose;
};

/* On failure everything is freed. If a part of an argument is wrong, the error's text ends with a line with a caret. */
struct dp_error *dp_options_parse(int argc, char **argv, struct dp_options *ret) DP_MUST_CHECK;
/* The same for another verb; argv[0] is skipped. */
struct dp_error *dp_options_parse_verb(enum dp_verb verb, int argc, char **argv, struct dp_options *ret) DP_MUST_CHECK;
void dp_options_fini(struct dp_options *options);
/* Is the output to `to` in colour? */
bool dp_options_color(const struct dp_options *options, FILE *to);

/* `topic`: of a run's help a group of options, one option, or a verb; NULL: the first screen. DP_TAG_USAGE: there is none. */
struct dp_error *dp_options_help(enum dp_verb verb, const char *topic, FILE *to) DP_MUST_CHECK;

/* Splits a command line into words as a shell does: blanks, 'single' and "double" quotes, backslash; no expansions. */
struct dp_error *dp_words_split(const char *line, char ***ret) DP_MUST_CHECK;
void dp_words_free(char **words);

#endif
