/* SPDX-License-Identifier: MIT */
/* What a trace tells its caller, and asks it, while it works. The engine itself prints nothing and handles no signals. */
#ifndef DP_SESSION_CALLS_H
#define DP_SESSION_CALLS_H

#include "base/error.h"
#include "output/output.h"
#include "pmodules/pmodules.h"

struct dp_trace_spec;

/* All functions are called on the caller's thread; those before `data` with it, the others with `run_data`. */
struct dp_trace_calls {
	/* A line for the user. DP_LOG_DEBUG: a detail; DP_LOG_INFO: what to expect; DP_LOG_WARNING: what the user must know. */
	void (*log)(enum dp_log_level level, const char *text, void *data);
	enum dp_log_level least; /* lower ones are not made */
	/*
	 * Before a step of long work that has changed nothing in a process yet: `done` steps of `of` (0: unknown) are done. An error ends
	 * the work and is its result.
	 */
	struct dp_error *(*step)(const char *what, size_t done, size_t of, void *data);
	/* While `of` probes (0: unknown) are placed or removed. True while they are placed: remove those that are placed already. */
	bool (*progress)(bool removing, size_t done, size_t of, void *data);
	/* From here on a process is being changed: the caller must not be killed without need. */
	void (*changing)(void *data);
	/* Threads of a process are stopped from `stopped` == true to the next call: the caller must not be killed. */
	void (*stopping)(bool stopped, void *data);

	void *data;

	/* While a run goes on (run.h); required there. */
	void (*event)(const struct dp_event *event, void *data);
	void (*fields_known)(unsigned probe, void *data); /* a library came: the fields of this probe are complete from now on */
	void (*note)(const char *text, void *data);       /* goes between the events */
	struct dp_error *(*flush)(uint64_t lost, void *data); /* now and then; so many hits were lost so far */
	void (*round)(void *data);                        /* all rings were read once more */
	bool (*interrupted)(bool leaving, void *data);    /* is the trace to end? `leaving`: at once, whatever is left to show? */
	int wake_fd;                                      /* becomes readable when `interrupted` may be true */
	void *run_data;
};

/* Each accepts NULL, a spec without calls, and calls without the function. */
void dp_trace_log(const struct dp_trace_spec *trace, enum dp_log_level level, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
bool dp_trace_logs(const struct dp_trace_spec *trace, enum dp_log_level level);
struct dp_error *dp_trace_step(const struct dp_trace_spec *trace, const char *what, size_t done, size_t of) DP_MUST_CHECK;
bool dp_trace_progress(const struct dp_trace_spec *trace, bool removing, size_t done, size_t of);
void dp_trace_changing(const struct dp_trace_spec *trace);
void dp_trace_stopping(const struct dp_trace_spec *trace, bool stopped);

#define DP_MANY_PLACES 1000u /* more probes than this are announced, and counted from the start */

#endif
