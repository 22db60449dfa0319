/* SPDX-License-Identifier: MIT */
/* The traces that dynprobe has recorded into one directory: listed, measured, removed. Other files there are not looked at. */
#ifndef DP_SESSION_TRACES_TRACES_H
#define DP_SESSION_TRACES_TRACES_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct dp_trace_entry {
	char *name, *path;   /* dynprobe-NAME-DATE; with the directory before it */
	char *program;       /* NAME */
	int64_t modified_ns; /* since the epoch */
	uint64_t bytes;      /* of its files */
	unsigned pieces;     /* of a recording with --rotate; 0: it is a single trace */
};
struct dp_trace_list {
	struct dp_trace_entry *item; /* the newest first */
	size_t n;
};
struct dp_trace_measure {
	int64_t begin_ns;   /* since the epoch; 0: no event */
	uint64_t length_ns; /* from the first event to the last */
	uint64_t events;
	bool more; /* there are more events: counting them would take too long */
	bool damaged;
};

/* `dir`: see dp_traces_dir(). One that does not exist has no traces. */
struct dp_error *dp_traces_list(const char *dir, struct dp_trace_list *ret) DP_MUST_CHECK;
void dp_traces_fini(struct dp_trace_list *list);
/* Reads the trace. DP_TAG_BAD_TRACE. */
struct dp_error *dp_traces_measure(const char *path, struct dp_trace_measure *ret) DP_MUST_CHECK;
/* Where runs record by default; the caller frees it. NULL: there is no home, or no memory. */
char *dp_traces_dir(void);
/*
 * Removes a trace with its directory. DP_TAG_BAD_TRACE, and nothing is removed: it is a link, or no trace of dynprobe's, or the
 * directory has other files as well. DP_TAG_LOCKED: it is being recorded, or read.
 */
struct dp_error *dp_traces_remove(const char *path) DP_MUST_CHECK;

#endif
