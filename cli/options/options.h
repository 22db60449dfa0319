/* SPDX-License-Identifier: MIT */
/* The command line of dynprobe, parsed. The option table in options.c also feeds --help and the shell completion. */
#ifndef DP_CLI_OPTIONS_H
#define DP_CLI_OPTIONS_H

#include "base/cleanup.h"
#include "base/error.h"
#include "cli/options/snapshot_args.h"
#include "output/reports/answers.h"
#include "output/snapshot/show.h"
#include "probes/probes.h"
#include "probes/point/syscalls.h"

#include <sys/types.h>

#define DP_PROFILE_HZ_MAX 10000u /* --profile */

enum dp_format { DP_FORMAT_TEXT, DP_FORMAT_JSON, DP_FORMAT_CTF };

/* Exit statuses, as timeout(1) and env(1) have them. A launched command's own status passes through. */
enum {
	DP_EXIT_PARTIAL = 124, /* some probes were refused, the others ran */
	DP_EXIT_FAILURE = 125, /* dynprobe itself failed; nothing was probed */
	DP_EXIT_CANNOT_RUN = 126,
	DP_EXIT_NOT_FOUND = 127,
};

/* What dynprobe is told to do. Each verb takes its own part of the one table of options. */
enum dp_verb {
	DP_VERB_RUN, /* no word for it: probes for as long as the command runs */
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
	DP_VERB_COUNT
};
/* "attach" and so on; NULL for DP_VERB_RUN. */
const char *dp_verb_word(enum dp_verb verb);
bool dp_verb_find(const char *word, enum dp_verb *ret);

enum dp_sink_choice {
	DP_SINK_AUTO, /* no option says which */
	DP_SINK_RING,
	DP_SINK_CURRENT, /* the user's current LTTng session, which gets a rule; the ring if there is none */
	DP_SINK_LTTNG
};

struct dp_typed { /* what was typed for one probe, for the manifest: struct dp_probe has the meaning only */
	char **context;
	size_t ncontexts;
	char *when; /* or NULL */
	/* The inlined function that a copy of begins at the probe's place, if it was named after it, as in struct dp_selected; or NULL. */
	char *inlined;
	struct dp_call_at call; /* of a system call */
	char *chosen;           /* of an exit with `call.chosen`: the condition under which its entry is meant */
	/* How events are said, or NULL: the first contexts are its arguments (printf_form.h). */
	struct dp_printf_form *form;
};

struct dp_asked { /* answers instead of events (answers.h) */
	unsigned what;     /* bits of enum dp_answer_what; 0: events */
	const char *value; /* the expression as typed, or NULL */
	char *linear;      /* owned: `value` of a linear histogram, cut out of its argument */
	bool average;      /* --avg: shown, made of the sum */
	enum dp_answers_rank rank; /* what the rows are sorted by: what was asked for first */
	int64_t low;
	uint64_t step;
	uint32_t buckets;
	const char *by; /* an expression or "backtrace", or NULL */
	uint64_t slower_ns, interval_ns;
	size_t top; /* rows to show; 0: all */
	bool folded;
};

#define DP_SNAPSHOT_INTERVAL_NS UINT64_C(1000000000)
struct dp_snapshots_asked { /* of hits (snapshots.h) */
	bool on, interval_given;
	uint32_t most;        /* --max-snapshots; 1 unless given */
	uint64_t interval_ns; /* --snapshot-interval: at least so long between two */
};

struct dp_options {
	pid_t *pid;
	size_t npids;
	char **command; /* NULL-terminated, or NULL */
	struct dp_probe *probe;
	struct dp_typed *typed; /* of each probe */
	size_t nprobes;
	const char **except; /* -x; owned as an array */
	size_t nexcept;
	uint64_t hits;        /* -n; 0: no limit */
	uint64_t duration_ns; /* -d; 0: no limit */
	const char *output;   /* -o; NULL: standard error; "-": standard output */
	const char *record;   /* --record; NULL: the default place */
	const char *color;    /* auto, always, never */
	enum dp_format format;
	size_t ring_size; /* --buffer-size; 0: default */
	size_t max_memory; /* --max-memory; 0: default */
	enum dp_sink_choice sink;
	/* LTTng, as typed; any of them makes `sink` DP_SINK_LTTNG. */
	const char *session, *set_url, *filter;
	uint64_t live_us; /* --live; 0: not live */
	bool attach;      /* leave the probes in place */
	bool pending;     /* wait for libraries that are not loaded yet */
	struct dp_asked asked;
	struct dp_snapshots_asked snapshots;
	struct dp_show_options show; /* of the verb show */
	unsigned profile_hz; /* --profile; 0: not asked for */
	bool own_events;  /* -n, -o, -f, --record or --no-record were given: events are to come to dynprobe itself (the ring) */
	char **name;      /* enable, disable, remove: the names behind the options, NULL-terminated; list: [FILE] [GLOB]; snapshot: [EXE]; show: FILE; pmodule: new, list, check or run, and what follows */
	size_t nnames;
	const char *language; /* pmodule new --lang; NULL: lua */
	struct dp_snapshot_args snapshot;
	const char *event;    /* add-context -e */
	const char **context; /* add-context -t, checked; owned as an array */
	size_t ncontexts;
	bool once; /* record: only what is held now */
	unsigned tactics; /* --tactic: bit set of enum dp_tactic; 0: every jump */
	bool no_trap;
	bool no_record, quiet, dry_run, allow_seccomp, help, version;
	int verbose;
};

/* On failure everything is freed. The error's text ends with a caret line where a part of an argument is at fault. */
struct dp_error *dp_options_parse(int argc, char **argv, struct dp_options *ret) DP_MUST_CHECK;
/* The same for another verb; argv[0] is skipped. */
struct dp_error *dp_options_parse_verb(enum dp_verb verb, int argc, char **argv, struct dp_options *ret) DP_MUST_CHECK;
void dp_options_fini(struct dp_options *options);

void dp_options_help(enum dp_verb verb, FILE *to);
/* A bash completion script made from the option table. */
void dp_options_completion(FILE *to);

/* Splits a command line into words as a shell does: blanks, 'single' and "double" quotes, backslash; no expansions. */
struct dp_error *dp_words_split(const char *line, char ***ret) DP_MUST_CHECK;
void dp_words_free(char **words);

#endif
