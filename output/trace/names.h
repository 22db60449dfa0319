/* SPDX-License-Identifier: MIT */
/*
 * What names the addresses of a recorded trace, from its dynprobe/names: which process had which image when, and names of
 * addresses. Of a run that ended properly, the names are complete. Source lines, and what has no name because the run was killed,
 * are looked up in the files of the modules, if these have the recorded build-id.
 */
#ifndef DP_OUTPUT_TRACE_NAMES_H
#define DP_OUTPUT_TRACE_NAMES_H

#include "base/error.h"
#include "probes/probes.h"

#include <sys/types.h>

struct dp_trace_names; /* opaque */
/* A line that is damaged, as the last one of a killed run may be, ends the reading: *complete is false then. */
struct dp_error *dp_trace_names_parse(const char *text, size_t len, struct dp_trace_names **ret) DP_MUST_CHECK;
struct dp_trace_names *dp_trace_names_destroy(struct dp_trace_names *names);

struct dp_trace_thread { /* as an event has it */
	pid_t inner_pid, inner_tid;
	struct dp_image *image; /* NULL: unknown */
	const char *exe;        /* or NULL */
	uint64_t until;         /* the process has another image then */
};
/* What is known of a thread at that time. */
void dp_trace_names_find(struct dp_trace_names *names, pid_t pid, pid_t tid, uint64_t ns, struct dp_trace_thread *ret);
/* Marks the frames of a backtrace that were found by frame pointer, as the agent marks them. `frames` are n words. */
void dp_trace_names_mark(const struct dp_trace_names *names, const struct dp_image *image, uint8_t *frames, size_t n);
/* Are there frames to mark? */
bool dp_trace_names_marks(const struct dp_trace_names *names);

#endif
