/* SPDX-License-Identifier: MIT */
/* The callbacks by which a run reports to its caller and asks it. The engine prints nothing and handles no signals. */
#ifndef DP_SESSION_CALLS_H
#define DP_SESSION_CALLS_H

#include "base/error.h"
#include "output/output.h"
#include "pmodules/pmodules.h"

struct dp_trace_spec;

/* All functions run on the caller's thread. Those above `data` get `data`, the others get `run_data`. */
struct dp_trace_calls {
	/* One line for the user. DP_LOG_DEBUG: a detail; DP_LOG_INFO: what to expect; DP_LOG_WARNING: what the user must know. */
	void (*log)(enum dp_log_level level, const char *text, void *data);
	enum dp_log_level least; /* lines below this level are not formatted */
	/*
	 * Before each step of long work that has not changed a process yet. `done` of `of` steps (0: unknown) are done. An error
	 * ends the work and becomes its result.
	 */
	struct dp_error *(*step)(const char *what, size_t done, size_t of, void *data);
	/* While `of` probes (0: unknown) are installed or removed. True during installation: stop, and remove the installed ones.
	 */
	bool (*progress)(bool removing, size_t done, size_t of, void *data);
	/* From now on the engine changes a process: do not kill the caller without need. */
	void (*changing)(void *data);
	/* From `stopped` == true to the next call, threads of a process are stopped: do not kill the caller. */
	void (*stopping)(bool stopped, void *data);

	void *data;

	/* During a run (run.h), which requires all of these. */
	void (*event)(const struct dp_event *event, void *data);
	/*
	 * If not NULL, the caller does not need the order of time over all threads: in runs without a limit on hits and without
	 * snapshots it gets batches instead, which is much faster. It marks damaged events.
	 */
	void (*batch)(const struct dp_event_batch *batch, void *data);
	void (*gap)(void *data); /* hits of the process of the next event were lost since the event before; or NULL */
	void (*forget)(const struct dp_image *image, void *data); /* that of earlier events is about to go; or NULL */
	bool (*full)(void *data); /* after an event: wants the caller no more of them? Then the run ends */
	void (*fields_known)(unsigned probe, void *data);     /* a library was loaded: this probe's fields are final */
	void (*note)(const char *text, void *data);           /* a line between the events */
	struct dp_error *(*flush)(uint64_t lost, void *data); /* called now and then; `lost`: hits lost so far */
	void (*round)(uint64_t ns, void *data);               /* every ring was read once more, up to this time */
	bool (*interrupted)(bool leaving, void *data); /* end the run? `leaving`: at once, without the rest of the events? */
	int wake_fd;                                   /* becomes readable when `interrupted` may be true */
	void *run_data;
};

/* Each accepts a `trace` of NULL, a spec without calls, and calls without the function. */
void dp_trace_log(const struct dp_trace_spec *trace, enum dp_log_level level, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
bool dp_trace_logs(const struct dp_trace_spec *trace, enum dp_log_level level);
struct dp_error *dp_trace_step(const struct dp_trace_spec *trace, const char *what, size_t done, size_t of) DP_MUST_CHECK;
bool dp_trace_progress(const struct dp_trace_spec *trace, bool removing, size_t done, size_t of);
void dp_trace_changing(const struct dp_trace_spec *trace);
void dp_trace_stopping(const struct dp_trace_spec *trace, bool stopped);

#define DP_MANY_PLACES 1000u /* above this number of probes, cost and progress are reported */

#endif
