/* SPDX-License-Identifier: MIT */
/*
 * output/: everything that users read. Writes decoded hits as live text, NDJSON and CTF, and the summary; does not depend on how
 * the events were made. All writers take the same struct dp_event and the same field tables.
 */
#ifndef DP_OUTPUT_OUTPUT_H
#define DP_OUTPUT_OUTPUT_H

#include "base/boot_id.h"
#include "base/error.h"
#include "injector/ring/hits.h"
#include "injector/ring/loss.h"
#include "probes/point/syscalls.h"
#include "probes/probes.h"

#include <sys/types.h>

struct dp_event_class { /* one per probe; outlives the writers */
	const char *name;
	const char *spec; /* as typed */
	const struct dp_fields *fields;
	const struct dp_printf_form *form; /* format of the event's message (printf_form.h), or NULL */
	const char *title;                 /* shown to people instead of the name, or NULL */
	const struct dp_call_at *call;     /* the events are about system calls: this one; or NULL */
	const char *entry; /* a return's: the name of the class that has its calls' entries, with their arguments; or NULL */
	/* Of joined classes (dp_joiner_create()). */
	bool is_call; /* an event is a whole call: the first `nargs` fields are its arguments */
	bool joined;  /* entries: they become part of other classes' events */
	size_t nargs;
};

struct dp_event {
	uint64_t ns; /* CLOCK_MONOTONIC */
	pid_t pid, tid;
	pid_t inner_pid, inner_tid; /* in the process's own pid namespace; 0: the same */
	uint64_t lane;              /* where the event was written: by one thread at a time; a trace has a stream for each */
	const char *comm;    /* the thread's name, or the process's if it is not known */
	const char *process; /* the process's name; NULL: not known */
	unsigned probe; /* index of the event class */
	const uint8_t *payload;
	size_t len;
	struct dp_image *image; /* for backtraces; may be NULL */
	bool unseen;            /* of a whole call: its entry was not recorded, so its arguments are unknown */
};

struct dp_event_batch { /* consecutive events of one thread; the members are as in struct dp_event */
	const struct dp_hits *hits;
	pid_t pid;
	const char *comm;
	const size_t *class;    /* for each probe, its event class; NULL: the same number */
	struct dp_image *image; /* for backtraces; may be NULL */
};

/* CLOCK_REALTIME - CLOCK_MONOTONIC in ns, taken once per run so that all writers agree. */
int64_t dp_clock_offset(void);
/* For events of another run: that run's. Call it before threads are started. */
void dp_clock_set_offset(int64_t recorded);
/* The machine's boot, by which traces with the same clock are known; "" if unknown, or after dp_clock_set_offset(). */
void dp_clock_boot(char id[DP_BOOT_ID]);

/* ---- whole calls: the events of an entry and of the return of the same call as one event (joiner.c)------------------------ */

struct dp_joiner; /* opaque */
struct dp_writer;
/* *ret is NULL if no class is the return of another. Borrows the classes. */
struct dp_error *dp_joiner_create(const struct dp_event_class *classes, size_t n, struct dp_joiner **ret) DP_MUST_CHECK;
struct dp_joiner *dp_joiner_destroy(struct dp_joiner *c);
/* As many as before, under the same numbers; valid until dp_joiner_known(). */
const struct dp_event_class *dp_joiner_classes(const struct dp_joiner *c);
/* The fields of class `i` are known only now. */
struct dp_error *dp_joiner_known(struct dp_joiner *c, unsigned i) DP_MUST_CHECK;
/* Takes an event whose payload was checked. False: it is kept, as the entry of a call; else *ret is the event to show. */
bool dp_joiner_event(struct dp_joiner *c, const struct dp_event *e, struct dp_event *ret);
struct dp_joiner_counts {
	uint64_t open;      /* their return was not seen so far */
	uint64_t forgotten; /* of them: too many were open, so they are not known any more */
	uint64_t unseen;    /* returns without their entry */
};
void dp_joiner_counts(const struct dp_joiner *c, struct dp_joiner_counts *ret);
/* A writer of whole calls on top of `to`, which has the classes of `c`. Owns both. */
struct dp_error *dp_join_writer_create(struct dp_joiner *c, const struct dp_event_class *classes, size_t n, struct dp_writer *to,
                                       struct dp_writer **ret) DP_MUST_CHECK;
/* Of such a writer; NULL for others. */
const struct dp_joiner *dp_writer_joiner(const struct dp_writer *w);

struct dp_writer; /* opaque; contains a method table that the text, JSON and CTF writers implement */
/* Writes one event. The first error is kept, and returned by dp_writer_flush(). */
void dp_writer_event(struct dp_writer *w, const struct dp_event *event);
/* The same for a payload in our own memory whose length was checked, with strings cut already: a recorded event's. */
void dp_writer_recorded(struct dp_writer *w, const struct dp_event *event);
/*
 * The same for many, by writers that do not need the order of time over all threads. Marks those that are damaged, and ignores
 * those of unknown classes.
 */
void dp_writer_batch(struct dp_writer *w, const struct dp_event_batch *batch);
/* Announces the fields of class `i`, which were unknown when the writer was created. Call before its first event. */
void dp_writer_class(struct dp_writer *w, unsigned i);
/* A line from dynprobe itself ("probe foo retired: ..."); text and json only. */
void dp_writer_note(struct dp_writer *w, const char *text);
/* Sets the total of lost events, for the next packet (CTF only). */
void dp_writer_lost(struct dp_writer *w, uint64_t total_lost);
/* Events were lost before the next one. */
void dp_writer_gap(struct dp_writer *w);
/* The image of earlier events is about to go. */
void dp_writer_forget(struct dp_writer *w, const struct dp_image *image);
/* The time is `ns` (CLOCK_MONOTONIC), and all events until about then have been written: a writer that waits for the ends of calls shows
 * those that last. */
void dp_writer_until(struct dp_writer *w, uint64_t ns);
struct dp_error *dp_writer_flush(struct dp_writer *w) DP_MUST_CHECK;
/* Flushes, finishes the file and frees; returns the first error that ever occurred. */
struct dp_error *dp_writer_close(struct dp_writer *w) DP_MUST_CHECK;

/*
 * Frames of backtraces get source lines. Call it before the first event; `lines` (or NULL) must outlive the writer. `patient`:
 * many events wait for lines, where otherwise some are written without.
 */
struct dp_source_lines;
void dp_writer_show_sources(struct dp_writer *w, struct dp_source_lines *lines, bool patient);

/* Writes text to `to`, which is not closed. `color`: use escape codes. */
struct dp_error *dp_text_writer_create(FILE *to, bool color, const struct dp_event_class *classes, size_t n,
                                       struct dp_writer **ret) DP_MUST_CHECK;
/* Writes NDJSON (docs/json.md): a header line with version and event classes, then a line per event. */
struct dp_error *dp_json_writer_create(FILE *to, const struct dp_event_class *classes, size_t n,
                                       struct dp_writer **ret) DP_MUST_CHECK;
/* Writes Chrome's trace event format, for ui.perfetto.dev: one JSON object, complete when the writer is closed. */
struct dp_error *dp_perfetto_writer_create(FILE *to, const struct dp_event_class *classes, size_t n,
                                           struct dp_writer **ret) DP_MUST_CHECK;
/*
 * Writes CTF 1.8 into the directory `dir`, which is created with its parents (mode 0700) and must not contain a trace yet: the
 * file `metadata`, and a file events_N for each lane (decision 0048).
 */
struct dp_error *dp_ctf_writer_create(const char *dir, const struct dp_event_class *classes, size_t n,
                                      struct dp_writer **ret) DP_MUST_CHECK;
/*
 * The same within limits. `piece`: `dir` is a folder of traces, 0001, 0002 and so on; when one has that size the next begins.
 * `most`: of all together. With both, the oldest traces are removed; with `most` alone, dp_writer_full() says when it is reached.
 * What is written by one flush, and a page for each stream, may come on top. 0: no limit.
 */
struct dp_record_limits {
	uint64_t piece, most;
};
struct dp_error *dp_recorder_create(const char *dir, const struct dp_record_limits *limits, const struct dp_event_class *classes,
                                    size_t n, struct dp_writer **ret) DP_MUST_CHECK;
struct dp_record_pieces {
	unsigned kept, removed;
	uint64_t events; /* of those that were removed */
};
/* Of such a writer; false without `piece`. */
bool dp_recorder_pieces(const struct dp_writer *w, struct dp_record_pieces *ret);
/* Has it taken all that it may? It ignores no event, but the caller should not pass more. */
bool dp_writer_full(const struct dp_writer *w);
bool dp_writer_failed(const struct dp_writer *w);
/*
 * $LTTNG_HOME or $HOME, then lttng-traces/dynprobe-NAME-YYYYMMDD-HHMMSS, with a number added if that exists. The caller frees it.
 */
struct dp_error *dp_ctf_default_dir(const char *name, char **ret) DP_MUST_CHECK;

/* ---- summary ------------------------------------------------------------------------------------------------------------------
 */

struct dp_summary_probe {
	const char *name, *spec;
	const char *title; /* the name as people read it, or NULL */
	pid_t pid;         /* 0: a sum over `processes` of a watched program, which have ended */
	unsigned processes;
	const char *comm;   /* the process's name, or NULL */
	pid_t inner_pid;    /* in the process's own pid namespace; 0: the same */
	const char *tactic; /* NULL if refused */
	const char *tag;    /* "DP-..." if refused or retired, else NULL */
	const char *reason; /* one line, or NULL */
	bool retired;
	bool left_out; /* the refusal is only a note: one of the few failures among the many places of a pattern */
	bool is_call;  /* at one of the many places that make a system call: has no row of text without a hit */
	uint64_t addr;
	uint64_t recorded;
	struct dp_loss lost;
	uint64_t lost_unpaired, lost_crowded; /* of aggregations */
};
struct dp_summary_snapshots { /* what became of each hit */
	uint64_t taken, failed;
	uint64_t over, missed, late; /* beyond the limits; during another snapshot; waited in vain */
};
struct dp_summary_waits {        /* hits whose ring was full, that waited (--on-full block) */
	uint64_t hits, late, ns; /* late: in vain; ns: all together */
};
struct dp_summary_child { /* a fork child whose probes could not be removed */
	pid_t pid;
	const char *comm, *tag, *why;
};
struct dp_summary_children {
	bool asked;        /* --follow */
	unsigned followed; /* fork children that recorded */
	unsigned cleaned;  /* whose probes were removed */
	const struct dp_summary_child *left;
	size_t nleft;
};
struct dp_summary_programs { /* of --program: processes that executed one during the run; of --all: that mapped a module */
	unsigned started;
	unsigned late;     /* of them: had begun when they got their probes */
	unsigned unprobed; /* of them: got none */
	unsigned denied;   /* of --all: processes whose mappings this user may not see */
};
struct dp_summary {
	bool verbose;                         /* text only: tactics, all tables, stops */
	bool aggregated;                      /* text only: tables of an aggregation have said what each probe counted */
	bool launched;                        /* text only: the program was started with its probes, so nothing waited for them */
	const struct dp_summary_probe *probe; /* those of one process are neighbours */
	size_t n;
	uint64_t attach_ns;                        /* from start to armed */
	uint64_t armed_ns;                         /* from armed to the start of the removal; 0: unknown */
	uint64_t detach_ns;                        /* duration of the removal */
	uint64_t pause_attach_ns, pause_detach_ns; /* longest pause of any thread */
	struct dp_summary_stops {
		uint64_t held_ns;     /* total time for which a thread was held */
		unsigned stops, vain; /* vain: how many of the stops were given up */
	} attach, detach;
	const char *frozen_attach, *frozen_detach; /* why all threads were held at once, or NULL */
	const char *by_calls;                      /* why probes read memory by system calls, which is slow; or NULL */
	uint64_t by_calls_ns;                      /* for how long; 0: until the end */
	size_t left_bytes;                         /* memory that could not be removed from the target */
	size_t left_sites;                         /* places of its text that are still changed */
	const char *left_why;
	const char *record_dir;                /* NULL if not recorded */
	const struct dp_record_pieces *pieces; /* of it; NULL: it is one trace */
	const char *session; /* sink lttng: the LTTng session that has the events, whose number only LTTng knows; else NULL */
	const struct dp_summary_snapshots *snapshots; /* NULL: none were requested */
	const struct dp_summary_waits *waits;         /* NULL: hits do not wait */
	const struct dp_summary_children *children;   /* NULL: not known */
	const struct dp_summary_programs *programs;   /* NULL: none were watched */
	const char *ended_by;                         /* "interrupt", "hits", "duration", "target exited", "target called exec" */
};
/* hits = recorded + lost. Probes requested, placed by tactic, refused by reason; hits, losses by cause, longest pauses in us. */
void dp_summary_text(const struct dp_summary *s, FILE *to, bool color);
void dp_summary_json(const struct dp_summary *s, FILE *to); /* one line, {"type":"summary",...} */

/*
 * ---- resident probes
 * -------------------------------------------------------------------------------------------------------------
 */

struct dp_listing_probe {
	const char *name, *spec;
	const char *state;    /* "enabled", "disabled", "retired", "removed" */
	char *const *context; /* as typed */
	size_t ncontexts;
	const char *when;             /* or NULL */
	const char *where;            /* "foo+0x4/0x21 [server]" */
	const char *sink;             /* "ring", "lttng" */
	const char *session;          /* LTTng's, or NULL */
	uint64_t addr;                /* 0 if removed */
	struct dp_summary_probe loss; /* the lost_ members */
};
struct dp_leftover; /* injector/injector.h */
struct dp_listing { /* one process */
	pid_t pid;
	const char *comm;
	const struct dp_listing_probe *probe;
	size_t n;
	const struct dp_leftover *leftover;
	size_t nleftovers;
	const char *trouble; /* what is unknown about this process and why, or NULL */
};
/* Text from the process's memory is escaped for terminals. */
void dp_listing_text(const struct dp_listing *l, FILE *to);
void dp_listing_json(const struct dp_listing *l, FILE *to); /* one line, {"type":"status",...} */
/* "a fork of 12, which has ended" or "a dynprobe that was killed"; and "12 changed places of text, 604 KiB". */
#define DP_LEFTOVER_SIZE 128u
void dp_leftover_origin(const struct dp_leftover *l, char ret[DP_LEFTOVER_SIZE]);
void dp_leftover_extent(const struct dp_leftover *l, char ret[DP_LEFTOVER_SIZE]);

#endif
