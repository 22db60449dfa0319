/* SPDX-License-Identifier: MIT */
/* What a trace is asked for: the processes, the probes, what they record, where the events go, and the limits. */
#ifndef DP_SESSION_TRACE_SPEC_H
#define DP_SESSION_TRACE_SPEC_H

#include "base/cleanup.h"
#include "output/reports/answers.h"
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
	DP_SINK_AUTO, /* no option says which */
	DP_SINK_RING,
	DP_SINK_LTTNG,
	DP_SINK_CURRENT /* the user's current LTTng session, which gets a rule; the ring if there is none */
};

struct dp_typed { /* the words that one probe was asked for with, for the manifest: struct dp_probe has their meaning only */
	char **context;
	size_t ncontexts;
	char *when; /* or NULL */
	/* The inlined function that a copy of begins at the probe's place, if it was named after it, as in struct dp_selected; or NULL. */
	char *inlined;
	struct dp_call_at call; /* of a system call */
	char *chosen;           /* of an exit with `call.chosen`: the condition under which its entry is meant */
	/* The format of --printf, or NULL: the first contexts are its arguments (printf_form.h). */
	struct dp_printf_form *form;
};
/* False without memory; `to` then holds a part, for dp_typed_fini(). */
bool dp_typed_copy(const struct dp_typed *from, struct dp_typed *to);
void dp_typed_fini(struct dp_typed *typed);
/* Adds to the probe what needs no program: fixed contexts, and a condition on registers alone. */
struct dp_error *dp_typed_take(const struct dp_typed *typed, struct dp_probe *p) DP_MUST_CHECK;

struct dp_asked { /* aggregations instead of events (session_answers.h) */
	unsigned what;     /* bits of enum dp_answer_what; 0: events */
	const char *value; /* the expression as typed, or NULL */
	char *linear;      /* owned: `value` of a linear histogram, cut out of its argument */
	bool average;      /* --avg: computed from the sum when it is shown */
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
	bool on;
	uint32_t most;        /* at most so many; 1 unless given */
	uint64_t interval_ns; /* at least so long between two */
	struct dp_take_options take;
};

#define DP_PROBES_MAX 60000u /* of one trace, what patterns stand for included */

struct dp_trace_spec {
	pid_t *pid;
	size_t npids;
	char **command; /* to start instead, NULL-terminated; or NULL */
	struct dp_probe *probe;
	struct dp_typed *typed; /* of each probe */
	size_t nprobes;
	struct dp_word_list except; /* functions that patterns leave out */
	uint64_t hits;        /* 0: no limit */
	uint64_t duration_ns; /* 0: no limit */
	size_t ring_size;     /* bytes; 0: default */
	size_t max_memory;    /* bytes; 0: default */
	enum dp_sink_choice sink;
	/* LTTng, as typed; any of them makes `sink` DP_SINK_LTTNG. */
	const char *session, *set_url, *filter;
	uint64_t live_us; /* 0: not live */
	bool attach;      /* leave the probes in place */
	bool pending;     /* wait for libraries that are not loaded yet */
	bool own_events;  /* the caller wants the events itself: never the user's current LTTng session */
	bool no_trap, dry_run, allow_seccomp;
	unsigned tactics; /* bits of enum dp_tactic; 0: every jump */
	struct dp_asked asked;
	struct dp_snapshots_asked snapshots;
	const struct dp_trace_calls *calls; /* or NULL */
};

#endif
