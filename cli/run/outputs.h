/* SPDX-License-Identifier: MIT */
/*
 * Where a run's events go: the live view (text or NDJSON) and the recording (CTF). The live view is on standard output; beside a
 * command that dynprobe started, whose own output that is, on standard error.
 */
#ifndef DP_CLI_RUN_OUTPUTS_H
#define DP_CLI_RUN_OUTPUTS_H

#include "cli/options/options.h"
#include "cli/run/outlet.h"
#include "output/aggregations/redraw.h"
#include "output/output.h"
#include "probes/point/source/source_lines.h"

struct dp_outputs {
	struct dp_writer *live, *record; /* either may be NULL */
	FILE *file;                      /* what `live` writes to */
	struct dp_source_lines *sources; /* for backtraces, or NULL */
	struct dp_outlet *outlet;        /* behind it, or NULL */
	struct dp_outlet *notes;         /* before standard error, or NULL */
	FILE *close_file;                /* or NULL */
	bool to_stderr, color;
	struct dp_drawn drawn; /* of aggregations, on a terminal */
	bool notes_apart; /* notes go to standard error, text events elsewhere */
	char *record_dir;
	bool old_dir;                   /* it is not ours: it was there before */
	bool rotates;                   /* it has several traces */
	struct dp_record_pieces pieces; /* when it has ended */
	struct dp_joiner_counts calls;  /* when it has ended */
	struct dp_event_class *classes;
	size_t nclasses;
};

struct dp_outputs_reader {
	dp_outlet_leave_fn leave; /* outlet.h */
	void *data;
	int signal_fd; /* a signal cuts the wait for source lines short */
};
/* Event classes are the probes of `trace`. */
struct dp_error *dp_outputs_open(const struct dp_options *options, const struct dp_trace_spec *trace, const char *name,
                                 const struct dp_outputs_reader *reader, struct dp_outputs *ret) DP_MUST_CHECK;
/* For a run without events: only the summary, to standard error. */
void dp_outputs_none(const struct dp_options *options, struct dp_outputs *ret);
void dp_outputs_event(struct dp_outputs *o, const struct dp_event *event);
/* Events were lost before the next one. */
void dp_outputs_gap(struct dp_outputs *o);
/* Whether the outputs take events in batches: those that are only recorded. */
bool dp_outputs_takes_batches(const struct dp_outputs *o);
void dp_outputs_batch(struct dp_outputs *o, const struct dp_event_batch *batch);
/* Does the recording have its size, or can it not be written? Then it wants no more events. */
bool dp_outputs_full(const struct dp_outputs *o);
/* The fields of class `i` are known now, before its first event. */
void dp_outputs_class(struct dp_outputs *o, unsigned i);
/* A JSON note is an object among the events; text goes to standard error. */
void dp_outputs_note(struct dp_outputs *o, const char *text);
struct dp_error *dp_outputs_flush(struct dp_outputs *o, uint64_t lost) DP_MUST_CHECK;
/* Call it when all events of a round are written, those until `ns`: a terminal or a pipe gets them now, a file when they are
 * many, or at a flush.
 */
void dp_outputs_round(struct dp_outputs *o, uint64_t ns);
/* Writes the buffered rest of the live view and of the notes; returns the number of bytes dropped (outlet.h). */
size_t dp_outputs_settle(struct dp_outputs *o);
/* The same, and says what was dropped. */
void dp_outputs_rest(struct dp_outputs *o);
/* Says on standard error that frames have no source lines because debug information was not read in time, if it is so. */
void dp_outputs_say_missed(const struct dp_source_lines *sources);
/* JSON goes where the events go, text to standard error. Adds what is known of the recording. */
void dp_outputs_summary(const struct dp_outputs *o, const struct dp_options *options, const struct dp_summary *summary);
/* After the summary: writes what is buffered. A command that is waited for may run for hours, or end dynprobe by its signal. */
struct dp_error *dp_outputs_last(struct dp_outputs *o) DP_MUST_CHECK;
/* Has the reader of a pipe seen enough? Then the run ends as by Ctrl-C. */
bool dp_outputs_unread(const struct dp_error *err);
/* Is this only the end of a recording: its disk, quota or RLIMIT_FSIZE is full? */
bool dp_outputs_disk_full(const struct dp_error *err);
/* For a run without a hit that failed: ends the outputs, and removes the recording with the directory made for it. */
void dp_outputs_discard(struct dp_outputs *o);
/* Ends the recording and the live view; the summary can still be written until dp_outputs_fini(). */
struct dp_error *dp_outputs_end(struct dp_outputs *o) DP_MUST_CHECK;
void dp_outputs_fini(struct dp_outputs *o);

#endif
