/* SPDX-License-Identifier: MIT */
/* Opens a session's target, and passes on what the injector reports. */
#include "injector/loads.h"
#include "injector/open/adopt.h"
#include "session/process/session.h"
#include "session/process/session_aggs.h"

#include <stdlib.h>
#include <string.h>

static void log_line(const char *line, void *data)
{
	const struct dp_session *s = data;
	dp_trace_log(s->trace, DP_LOG_DEBUG, "%s", line);
}

static bool on_progress(bool removing, size_t done, size_t of, void *data)
{
	const struct dp_session *s = data;
	const size_t all = s->nplanned, some = of ? (size_t)((double)all * (double)done / (double)of) : 0;
	return !dp_trace_progress(s->trace, removing, some, all) || removing;
}

bool dp_session_counts_stacks(const struct dp_trace_spec *trace)
{
	return dp_asked_is_by(&trace->asked, DP_KEY_STACK);
}

bool dp_session_wants_unwind(const struct dp_trace_spec *trace)
{
	for (size_t i = 0; i < trace->nprobes; i++)
		if (dp_fields_unwind(&trace->probe[i].fields))
			return true;
	return dp_aggs_unwind(trace);
}

static struct dp_target_options target_options(struct dp_session *s)
{
	const struct dp_trace_spec *trace = s->trace;
	return (struct dp_target_options){
	        .allow_seccomp = trace->allow_seccomp,
	        .need_unwind = dp_session_wants_unwind(trace),
	        .look = trace->dry_run,
	        .gates = trace->attach,
	        .follow = trace->follow && !trace->dry_run,
	        .ring_size = trace->ring_size,
	        .block_ns = trace->block_ns,
	        .overwrite = trace->overwrite,
	        .max_memory = trace->max_memory,
	        .max_wait_ns = trace->max_wait_ns,
	        .max_pause_ns = trace->snapshots.take.still.max_pause_ns,
	        .verbose = dp_trace_logs(trace, DP_LOG_DEBUG) ? log_line : NULL,
	        .verbose_data = s,
	        .progress = on_progress,
	        .progress_data = s,
	};
}

static struct dp_session *session_create(const struct dp_trace_spec *trace)
{
	struct dp_session *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->trace = trace;
	return s;
}

struct dp_error *dp_session_open(const struct dp_trace_spec *trace, pid_t pid, struct dp_session **ret)
{
	struct dp_session *s = session_create(trace);
	if (!s)
		return dp_error_nomem();
	const struct dp_target_options to = target_options(s);
	struct dp_error *err = dp_target_open(pid, &to, &s->target);
	if (err)
		dp_session_destroy(s);
	else
		*ret = s;
	return err;
}

struct dp_error *dp_session_launch(const struct dp_trace_spec *trace, struct dp_session **ret)
{
	struct dp_session *s = session_create(trace);
	if (!s)
		return dp_error_nomem();
	const struct dp_target_options to = target_options(s);
	struct dp_error *err = dp_target_launch(trace->command, &to, &s->target);
	if (err)
		dp_session_destroy(s);
	else
		*ret = s;
	return err;
}

struct dp_error *dp_session_adopt(const struct dp_trace_spec *trace, struct dp_launch *launch, pid_t pid, struct dp_session **ret)
{
	struct dp_session *s = session_create(trace);
	if (!s) {
		dp_launch_destroy(launch);
		return dp_error_nomem();
	}
	const struct dp_target_options to = target_options(s);
	struct dp_error *err = dp_target_adopt(launch, pid, &to, &s->target);
	if (err)
		dp_session_destroy(s);
	else
		*ret = s;
	return err;
}

struct dp_error *dp_session_beside(const struct dp_session *s, struct dp_session **ret)
{
	struct dp_session *later = session_create(s->trace);
	struct dp_error *err = later ? dp_target_open_beside(s->target, &later->target) : dp_error_nomem();
	if (err)
		dp_session_destroy(later);
	else
		*ret = later;
	return err;
}
