/* SPDX-License-Identifier: MIT */
/*
 * Reads the records of resident probes in one process: its groups of probes, their rings, and the order of their events. While a
 * recording reads the rings, full ones keep their oldest records; before and after, they keep the newest. No thread of the
 * process is stopped.
 */
#ifndef DP_SESSION_RECORDING_RECORDING_H
#define DP_SESSION_RECORDING_RECORDING_H

#include "base/buf.h"
#include "output/output.h"
#include "session/residents.h"

struct dp_recording_group { /* one group of probes with the ring sink */
	struct dp_residents_group *left;
	size_t first; /* the class of its probe 0 */
	bool served;
};

struct dp_recording {
	struct dp_residents *left;
	struct dp_recording_group *group;
	size_t ngroups;
	struct dp_trace_spec classes;                            /* the probes of all groups, as event classes */
	uint64_t most;                                           /* maximum number of events; 0: no limit */
	void (*event)(const struct dp_event *event, void *data); /* called in time order; set by the caller */
	void *data;
	uint64_t *recorded, *damaged; /* for each class */
	struct dp_buf hits, payloads; /* those that wait for older hits of other groups */
	uint64_t total, start_ns;
	bool found_old;       /* the last round had hits from before start_ns */
	const char *ended_by; /* NULL until it ends */
};

/* Finds the groups and makes their event classes; DP_TAG_NO_PROBE if there is nothing to record. */
struct dp_error *dp_recording_open(struct dp_residents *left, struct dp_recording *ret) DP_MUST_CHECK;
void dp_recording_fini(struct dp_recording *r);
/* From now until dp_recording_release() the rings have a reader. */
struct dp_error *dp_recording_serve(struct dp_recording *r) DP_MUST_CHECK;
struct dp_error *dp_recording_release(struct dp_recording *r) DP_MUST_CHECK;
/* One round over all groups. If the process ended or called exec, sets `ended_by` instead of failing. */
struct dp_error *dp_recording_round(struct dp_recording *r) DP_MUST_CHECK;
/* After the last round: passes on the waiting events. */
struct dp_error *dp_recording_finish(struct dp_recording *r) DP_MUST_CHECK;
bool dp_recording_has_all(const struct dp_recording *r);
/* Whether the process has ended. */
bool dp_recording_gone(const struct dp_recording *r);
/* Hits lost so far, for all reasons. */
uint64_t dp_recording_lost(const struct dp_recording *r);
/* Fills `row`, one for each class. Losses count from the installation of the probes. */
void dp_recording_summary(const struct dp_recording *r, struct dp_summary_probe *row);

#endif
