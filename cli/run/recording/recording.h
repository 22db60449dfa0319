/* SPDX-License-Identifier: MIT */
/* `dynprobe record` at work: the rings of one process, what they are made of, where their events go. */
#ifndef DP_CLI_RECORDING_H
#define DP_CLI_RECORDING_H

#include "base/buf.h"
#include "cli/run/outputs.h"
#include "session/left.h"

struct dp_recording_group { /* one group with the ring sink */
	struct dp_left_group *left;
	size_t first; /* class of its probe 0 */
	bool served;
};

struct dp_recording {
	const struct dp_options *options;
	struct dp_left *left;
	struct dp_recording_group *group;
	size_t ngroups;
	struct dp_trace_spec classes; /* the probes of all groups, as event classes */
	struct dp_outputs out;
	uint64_t *recorded, *damaged; /* of each class */
	struct dp_buf hits, payloads; /* that wait for older ones of other groups */
	uint64_t total, start_ns;
	bool found_old;       /* the last round brought hits from before start_ns */
	const char *ended_by; /* NULL while it goes on */
	int signal_fd;
};

/* Finds the groups and makes their event classes; DP_TAG_NO_PROBE if there is nothing to record. */
struct dp_error *dp_recording_open(const struct dp_options *options, struct dp_left *left,
                                   struct dp_recording *ret) DP_MUST_CHECK;
void dp_recording_fini(struct dp_recording *r);
/* One round over all groups, in time order. `last`: the process is gone. DP_TAG_GONE if that is found out here. */
struct dp_error *dp_recording_drain(struct dp_recording *r, bool last) DP_MUST_CHECK;
/* Behind the last round: writes what still waits for its turn. */
struct dp_error *dp_recording_finish(struct dp_recording *r) DP_MUST_CHECK;
bool dp_recording_has_all(const struct dp_recording *r);
void dp_recording_summary(struct dp_recording *r);

#endif
