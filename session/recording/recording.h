/* SPDX-License-Identifier: MIT */
/*
 * Reads the records of resident probes: their groups in one or more processes, their rings, and the order of their events. While
 * a recording reads the rings, full ones keep their oldest records; before and after, they keep the newest. No thread of a
 * process is stopped. A process that ends, or cannot be read any more, does not end the recording of the others.
 */
#ifndef DP_SESSION_RECORDING_RECORDING_H
#define DP_SESSION_RECORDING_RECORDING_H

#include "base/buf.h"
#include "output/output.h"
#include "session/residents.h"
#include "session/thread_names.h"

struct dp_recording_group { /* one group of probes with the ring sink */
	struct dp_residents_group *left;
	size_t process;
	/* For each probe: */
	size_t *class; /* its event class, which the same probe of other processes has too */
	uint64_t *recorded, *damaged;
	bool served;
};

struct dp_recording_class {
	const char *base; /* the probe's name; the class's is unique */
	size_t user;      /* the last process that has one */
};

struct dp_recording_process {
	struct dp_residents *left;
	const char *ended_by;    /* NULL while it is read */
	struct dp_error *failed; /* why it is not read any more, if it has not ended; or NULL */
};

struct dp_recording {
	struct dp_recording_process *process;
	size_t nprocesses;
	struct dp_recording_group *group; /* those of one process are neighbours */
	size_t ngroups;
	struct dp_trace_spec classes;                            /* event classes */
	struct dp_recording_class *class;                        /* more of each of them */
	size_t next;                                             /* where the search for a class begins */
	uint64_t most;                                           /* maximum number of events; 0: no limit */
	void (*event)(const struct dp_event *event, void *data); /* called in time order; set by the caller */
	/* Also set by the caller, or NULL: for it the order over all threads does not matter. Not used with a limit (`most`). */
	void (*batch)(const struct dp_event_batch *batch, void *data);
	bool (*full)(void *data); /* also: does the caller want no more of them? */
	void *data;
	struct dp_buf hits, payloads; /* those that wait for older hits of other groups */
	struct dp_thread_names threads;
	uint64_t total, start_ns;
	bool found_old;       /* the last round had hits from before start_ns */
	const char *ended_by; /* NULL until it ends */
};

/*
 * Adds a process, before its events are served: finds its groups, and their event classes. `left` must outlive the recording.
 * DP_TAG_NO_PROBE if there is nothing to record. After an error the recording is as it was before.
 */
struct dp_error *dp_recording_add(struct dp_recording *r, struct dp_residents *left) DP_MUST_CHECK;
void dp_recording_fini(struct dp_recording *r);
/* From now until dp_recording_release() the rings have a reader. */
struct dp_error *dp_recording_serve(struct dp_recording *r) DP_MUST_CHECK;
struct dp_error *dp_recording_release(struct dp_recording *r) DP_MUST_CHECK;
/*
 * One round over all groups. When the last process has ended or called exec, sets `ended_by`. It fails if the last one cannot be
 * read any more.
 */
struct dp_error *dp_recording_round(struct dp_recording *r) DP_MUST_CHECK;
/* After the last round: passes on the waiting events. */
struct dp_error *dp_recording_finish(struct dp_recording *r) DP_MUST_CHECK;
bool dp_recording_has_all(const struct dp_recording *r);
/* Hits lost so far, for all reasons. */
uint64_t dp_recording_lost(const struct dp_recording *r);
/* The number of rows of the summary, one for each probe in each process; fills them. Losses count from the installation. */
size_t dp_recording_nrows(const struct dp_recording *r);
void dp_recording_summary(const struct dp_recording *r, struct dp_summary_probe *row);

/* recording_events.c: what the error says of the process, which is not read any more. Takes it; NULL: the process has ended. */
void dp_recording_end(struct dp_recording_process *p, struct dp_error *err);
/* recording_class.c */
/* Finds or makes the class of probe i. */
struct dp_error *dp_recording_classify(struct dp_recording *r, struct dp_recording_group *g, size_t i) DP_MUST_CHECK;
/* Drops those from `n` on; the others are not that process's any more. */
void dp_recording_declassify(struct dp_recording *r, size_t n, size_t process);

#endif
