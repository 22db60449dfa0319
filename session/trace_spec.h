/* SPDX-License-Identifier: MIT */
/* What a run is asked for: the processes, the probes, what they record, where the events go, and the limits. */
#ifndef DP_SESSION_TRACE_SPEC_H
#define DP_SESSION_TRACE_SPEC_H

#include "base/cleanup.h"
#include "output/aggregations/aggregations.h"
#include "pmodules/pmodules.h"
#include "probes/point/syscalls.h"
#include "probes/probes.h"
#include "session/calls.h"

#include <sys/types.h>

struct dp_word_list { /* NULL-terminated once there is a word; owns the array, not the words */
	const char **item;
	size_t n;
};

enum dp_sink_choice {
	DP_SINK_AUTO, /* no option chose one */
	DP_SINK_RING,
	DP_SINK_LTTNG,
	DP_SINK_CURRENT /* the user's current LTTng session, which gets a rule; without one the ring */
};

struct dp_typed { /* one probe's options as typed, for the manifest and for parsing at each site */
	char **context;
	size_t ncontexts;
	char *when; /* or NULL */
	/* The function whose inlined copy begins at the site, if the probe is named after it, as in struct dp_selected; or NULL.
	 */
	char *inlined;
	struct dp_call_at call; /* for probes on a system call */
	/*
	 * A call as one event (expand_whole.c): is this its entry; or, of a return, the number of the entry's probe from 1 on, 0:
	 * none.
	 */
	bool enters, filtered; /* filtered: not every return is recorded */
	size_t entry;
	bool half; /* the entry of a system call whose exit is an event as well: -n counts calls */
	/* Of a run with `asked.tree` (expand_tree.c): what the user typed means its callees, too; the function's number, from 1 on. */
	bool calls, tree_enters, tails, root;
	size_t tree;
	char *chosen; /* for an exit with `call.chosen`: the condition on its entry; NULL: none */
	/* The format of --printf, or NULL. The first contexts are its arguments (printf_form.h). */
	struct dp_printf_form *form;
};
/* False if out of memory; `to` is then incomplete, but valid for dp_typed_fini(). */
bool dp_typed_copy(const struct dp_typed *from, struct dp_typed *to);
void dp_typed_fini(struct dp_typed *typed);
/* Adds to the probe what does not depend on the program: fixed contexts, and a condition on registers alone. */
struct dp_error *dp_typed_apply(const struct dp_typed *typed, struct dp_probe *p) DP_MUST_CHECK;

struct dp_asked {      /* aggregations instead of events (session_aggs.h) */
	unsigned what; /* bits of enum dp_agg_what of all of them; 0: events */
	struct dp_agg_part part[DP_AGG_PARTS_MOST];
	char *linear[DP_AGG_PARTS_MOST]; /* owned: the part of a linear histogram's argument that `value` points to */
	size_t nparts;
	enum dp_aggs_rank rank;                /* sort key of the rows: the first one asked for, which is of the first part */
	char *by;                              /* owned: all keys as typed; or NULL */
	struct dp_key_asked key[DP_KEYS_MOST]; /* owned texts */
	size_t nkeys;
	uint64_t slower_ns, interval_ns;
	size_t top; /* rows to show; 0: all */
	bool folded, rate;
	bool changes; /* each interval beside the one before */
	bool tree, self; /* the tree of calls (--calls), or its functions by their own time (--self) instead */
};
/* Adds keys: KEY[,KEY...], each an expression, caller, backtrace[:N], pid, comm or exe. */
struct dp_error *dp_asked_by(struct dp_asked *a, const char *keys) DP_MUST_CHECK;
/* Counts hits, if nothing else is asked. */
void dp_asked_count(struct dp_asked *a);
void dp_asked_fini(struct dp_asked *a);
/* Is this the only key? */
bool dp_asked_is_by(const struct dp_asked *a, enum dp_key_kind kind);
bool dp_asked_has_key(const struct dp_asked *a, enum dp_key_kind kind);
/* Are the rows' keys several values, or a caller? */
bool dp_asked_tuples(const struct dp_asked *a);
/* What a hit may copy for a key that is a string. */
unsigned dp_asked_text_words(const struct dp_key_asked *key);
/* DP_TAG_USAGE if a run has no room for such keys; traces do. */
struct dp_error *dp_asked_check_texts(const struct dp_asked *a) DP_MUST_CHECK;
/* How its rows are shown; the caller adds these. */
struct dp_aggs_shown dp_asked_shown(const struct dp_asked *a);
/* Do the texts of values and keys contain the word? */
bool dp_asked_mentions(const struct dp_asked *a, const char *word);

#define DP_SNAPSHOT_INTERVAL_NS UINT64_C(1000000000)
struct dp_snapshots_asked { /* of hits (snapshots.h) */
	bool on;
	uint32_t most;        /* at most this many; 1 unless given */
	uint64_t interval_ns; /* at least this long between two */
	struct dp_snap_capture_options take;
};

#define DP_PROBES_MAX 60000u /* of one run, with those that patterns stand for */

struct dp_trace_spec {
	pid_t *pid;
	size_t npids;
	pid_t *found; /* those that a search found (by name, control group, user): they may end before their turn */
	size_t nfound;
	struct dp_word_list programs;    /* paths, or names in PATH: their processes, also those to come (run/starts.h) */
	struct dp_word_list follow_exec; /* paths and names: with `follow`, only these are probed when executed; none: all */
	bool all;       /* every process that has a place for a probe, also those to come (process/everywhere.h) */
	char **command; /* a command to start instead of `pid`, NULL-terminated; or NULL */
	struct dp_probe *probe;
	struct dp_typed *typed; /* for each probe */
	size_t nprobes;
	struct dp_word_list except; /* functions that patterns leave out */
	uint64_t hits;              /* 0: no limit */
	uint64_t duration_ns;       /* 0: no limit */
	size_t ring_size;           /* bytes; 0: default */
	size_t max_memory;          /* bytes; 0: default */
	uint64_t max_wait_ns;       /* of a process that loads a library or starts, for dynprobe; 0: a second */
	uint64_t block_ns;          /* a hit whose ring is full waits so long; 0: it is lost */
	bool overwrite;             /* full rings keep the newest events, which are read in the end */
	bool dump_ring;             /* attach: core files of the process include the rings */
	enum dp_sink_choice sink;
	/* LTTng's options as typed; any of them makes `sink` DP_SINK_LTTNG. */
	const char *session, *set_url, *filter;
	uint64_t live_us; /* 0: not live */
	bool attach;      /* leave resident probes */
	bool pending;     /* wait for libraries that are not loaded yet */
	bool follow;      /* fork children record, too */
	bool own_events;  /* the caller wants the events: do not use the current LTTng session */
	bool no_trap, dry_run, allow_seccomp;
	unsigned tactics; /* bits of enum dp_tactic; 0: all that are jumps */
	struct dp_asked asked;
	struct dp_snapshots_asked snapshots;
	const struct dp_trace_calls *calls; /* or NULL */
};

/* Whether a search found the process, and the user did not name it by its number. */
bool dp_trace_found(const struct dp_trace_spec *trace, pid_t pid);
/*
 * Whether `err` only says that a process which a search had found has ended since: nothing is wrong then. With --program and --all
 * every process that is there when the run begins was found.
 */
bool dp_trace_found_ended(const struct dp_trace_spec *trace, pid_t pid, const struct dp_error *err);
/* Do processes to come get the probes? Then a run outlives its processes, and what is wrong with one of them never ends it. */
static inline bool dp_trace_awaits(const struct dp_trace_spec *trace)
{
	return trace->programs.n || trace->all;
}
/* "process of nginx", "process that has libssl.so.3!SSL_write": for messages. */
void dp_trace_awaited(const struct dp_trace_spec *trace, char *ret, size_t size);

#endif
