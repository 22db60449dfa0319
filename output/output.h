/* SPDX-License-Identifier: MIT */
/*
 * output/: what users read. Takes decoded hits and writes live text, NDJSON and CTF, and the summary. Does not know how events
 * were made. All writers take the same struct dp_event and the same field tables.
 */
#ifndef DP_OUTPUT_OUTPUT_H
#define DP_OUTPUT_OUTPUT_H

#include "base/error.h"
#include "injector/ring/loss.h"
#include "probes/probes.h"

#include <sys/types.h>

struct dp_event_class { /* one per probe; outlives the writers */
	const char *name;
	const char *spec; /* as typed */
	const struct dp_fields *fields;
	const struct dp_printf_form *form; /* how the event is said (printf_form.h), or NULL */
	const char *title;                 /* what people read instead of the name, or NULL */
};

struct dp_event {
	uint64_t ns; /* CLOCK_MONOTONIC */
	pid_t pid, tid;
	const char *comm;
	unsigned probe; /* index of the event class */
	const uint8_t *payload;
	size_t len;
	struct dp_image *image; /* for backtraces; may be NULL */
};

/* CLOCK_REALTIME - CLOCK_MONOTONIC in ns, taken once per run so that all writers agree. */
int64_t dp_clock_offset(void);

struct dp_writer; /* opaque, with a method table inside: text, json and ctf are three makers of the same thing */
/* Writes one event. Errors are kept and come back from dp_writer_flush(). */
void dp_writer_event(struct dp_writer *w, const struct dp_event *event);
/* The fields of class `i` were not known when the writer was made, and are now; before its first event. */
void dp_writer_class(struct dp_writer *w, unsigned i);
/* A line from dynprobe itself ("probe foo retired: ..."); text and json only. */
void dp_writer_note(struct dp_writer *w, const char *text);
/* Adds to the lost-events count that is written with the next packet (ctf) . */
void dp_writer_lost(struct dp_writer *w, uint64_t total_lost);
struct dp_error *dp_writer_flush(struct dp_writer *w) DP_MUST_CHECK;
/* Flushes, finishes the file and frees; the first error of the writer's life comes back. */
struct dp_error *dp_writer_close(struct dp_writer *w) DP_MUST_CHECK;

/* Text to `to` (not closed). `color`: escape codes. */
struct dp_error *dp_text_writer_create(FILE *to, bool color, const struct dp_event_class *classes, size_t n, struct dp_writer **ret) DP_MUST_CHECK;
/* NDJSON as docs/json.md describes: a header line with version and event classes, then a line per event. */
struct dp_error *dp_json_writer_create(FILE *to, const struct dp_event_class *classes, size_t n, struct dp_writer **ret) DP_MUST_CHECK;
/* CTF 1.8 into the directory `dir`, which is created with its parents (mode 0700) and must not hold a trace yet. */
struct dp_error *dp_ctf_writer_create(const char *dir, const struct dp_event_class *classes, size_t n, struct dp_writer **ret) DP_MUST_CHECK;
/* $LTTNG_HOME or $HOME, then lttng-traces/dynprobe-NAME-YYYYMMDD-HHMMSS; a number is added if it exists. Malloc'ed. */
struct dp_error *dp_ctf_default_dir(const char *name, char **ret) DP_MUST_CHECK;

/* ---- summary ------------------------------------------------------------------------------------------------------------------ */

struct dp_summary_probe {
	const char *name, *spec;
	pid_t pid;
	const char *tactic;  /* NULL if refused */
	const char *tag;     /* "DP-..." if refused or retired, else NULL */
	const char *reason;  /* one line, or NULL */
	bool retired;
	bool left_out;       /* refused, which is a note only: few of the many places that a pattern names */
	bool is_call;        /* at one of the many places that make a system call: not worth a row of text without a hit */
	uint64_t addr;
	uint64_t recorded;
	struct dp_loss lost;
	uint64_t lost_unpaired, lost_crowded; /* answers */
};
struct dp_summary_snapshots { /* of hits: each was one of these */
	uint64_t taken, failed;
	uint64_t over, missed, late; /* beyond the limits; while another was taken; waited in vain */
};
struct dp_summary {
	const struct dp_summary_probe *probe;
	size_t n;
	uint64_t attach_ns;      /* from start to armed */
	uint64_t armed_ns;       /* from armed to the begin of the removal; 0: not known */
	uint64_t detach_ns;      /* of the removal */
	uint64_t pause_attach_ns, pause_detach_ns; /* longest pause of any thread */
	struct dp_summary_stops {
		uint64_t held_ns;     /* during which one was held, in sum */
		unsigned stops, vain; /* vain: of these, those that were given up */
	} attach, detach;
	const char *frozen_attach, *frozen_detach; /* why all threads were held at once, or NULL */
	const char *by_calls;    /* why probes read memory by system calls, which is slow, or NULL */
	uint64_t by_calls_ns;    /* for how long; 0: to the end */
	size_t left_bytes;       /* what could not be taken out of the target */
	const char *left_why;
	const char *record_dir;  /* NULL if not recorded */
	const char *session;     /* sink lttng: LTTng's session has the events, and only it knows their number; else NULL */
	const struct dp_summary_snapshots *snapshots; /* NULL: none were asked for */
	const char *ended_by;    /* "interrupt", "hits", "duration", "target exited", "target called exec" */
};
/* hits = recorded + lost. Sites asked, placed by tactic, refused by reason, hits, recorded, lost by cause, longest pause in us. */
void dp_summary_text(const struct dp_summary *s, FILE *to, bool color);
void dp_summary_json(const struct dp_summary *s, FILE *to); /* one line, {"type":"summary",...} */

/* ---- probes that were left in processes ------------------------------------------------------------------------------------------ */

struct dp_listing_probe {
	const char *name, *spec;
	const char *state;   /* "enabled", "disabled", "retired", "removed" */
	char *const *context; /* as typed */
	size_t ncontexts;
	const char *when;    /* or NULL */
	const char *where;   /* "foo+0x4/0x21 [server]" */
	const char *sink;    /* "ring", "lttng" */
	const char *session; /* LTTng's, or NULL */
	uint64_t addr;       /* 0 if removed */
	struct dp_summary_probe loss; /* the lost_ members */
};
struct dp_listing { /* one process */
	pid_t pid;
	const char *comm;
	const struct dp_listing_probe *probe;
	size_t n;
	const char *trouble; /* what is not known of this process and why, or NULL */
};
/* All that is printed of a process's own memory is made harmless for terminals. */
void dp_listing_text(const struct dp_listing *l, FILE *to);
void dp_listing_json(const struct dp_listing *l, FILE *to); /* one line, {"type":"status",...} */

#endif
