/* SPDX-License-Identifier: MIT */
/* Opens a session's target, passes on what the injector reports, removes the probes, and closes it. */
#include "injector/loads.h"
#include "injector/open/adopt.h"
#include "session/process/pending.h"
#include "session/process/preview.h"
#include "session/process/session.h"
#include "session/process/session_aggs.h"
#include "session/process/session_trap.h"

#include <poll.h>
#include <stdio.h>
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
	        .dump_ring = trace->dump_ring,
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

/* ---- the end -------------------------------------------------------------------------------------------------------------- */

void dp_session_note_removal(struct dp_session *s, const struct dp_remove_report *report)
{
	if (report->pause_ns > s->removal.pause_ns)
		s->removal.pause_ns = report->pause_ns;
	s->removal.held_ns += report->held_ns;
	s->removal.stops += report->stops;
	s->removal.vain += report->vain;
	if (report->why_frozen[0])
		memcpy(s->removal.why_frozen, report->why_frozen, sizeof(report->why_frozen));
	s->removal.left_bytes += report->left_bytes;
	s->removal.left_sites += report->left_sites;
	if (report->left_bytes || report->left_sites)
		memcpy(s->removal.why, report->why, sizeof(s->removal.why));
}

static void note_failure(struct dp_session *s, const struct dp_error *err)
{
	if (!err)
		return;
	s->unremoved = true;
	snprintf(s->removal.why, sizeof(s->removal.why), "%s", err->message);
}

struct dp_error *dp_session_remove(struct dp_session *s)
{
	struct dp_remove_report report;
	struct dp_error *first = dp_pending_remove(s);
	struct dp_error *err = dp_target_remove(s->target, &report);
	dp_session_note_removal(s, &report);
	dp_session_park(s);
	dp_error_destroy(first ? err : NULL);
	first = first ? first : err;
	note_failure(s, first);
	return first;
}

void dp_session_sweep(struct dp_session *s, bool (*stop)(void *data), void *data)
{
	dp_children_fini(&s->children);
	dp_target_clean_children(s->target, false, stop, data, &s->children);
	/* A child is known to each session by a number of its own. Most have hits in the first one. */
	const unsigned late = dp_pending_unfollow(s), all = dp_target_unfollow(s->target);
	s->followed = late > all ? late : all;
	s->swept = true;
}

static bool has_ended(const struct dp_session *s)
{
	struct pollfd end = {.fd = dp_target_exit_fd(s->target), .events = POLLIN};
	return poll(&end, 1, 0) > 0;
}

bool dp_session_warn_of_left(struct dp_session *s)
{
	const bool left = (s->unremoved || s->removal.left_bytes || s->removal.left_sites) && !has_ended(s);
	const pid_t pid = dp_target_pid(s->target);
	if (left && !s->said_left)
		dp_trace_log(
		        s->trace, DP_LOG_WARNING,
		        "what dynprobe mapped in process %d cannot be removed yet: %s; dynprobe detach --pid %d removes it later",
		        pid, s->removal.why, pid);
	s->said_left |= left;
	return left;
}

void dp_session_warn_of_children(const struct dp_session *s)
{
	for (size_t i = 0; i < s->children.nleft; i++)
		dp_trace_log(s->trace, DP_LOG_WARNING, "fork child %d (%s) still has probes: %s", s->children.left[i].pid,
		             s->children.left[i].comm, s->children.left[i].why->message);
}

/* Removes the events of a failed run from the process. (A command that dynprobe started dies before it has begun.) */
static void give_up_events(struct dp_session *s)
{
	if (!s->classes || s->kept || s->trace->command)
		return;
	dp_error_destroy(dp_session_remove(s));
	dp_session_warn_of_left(s);
}

/* A run that failed or was interrupted early: the program may have forked while probes were placed. */
static void sweep_late(struct dp_session *s)
{
	struct dp_remove_report report;
	if (!s->target || s->swept || s->kept || s->trace->dry_run || s->trace->command)
		return;
	struct dp_error *err = dp_target_remove(s->target, &report);
	dp_session_note_removal(s, &report);
	note_failure(s, err);
	dp_error_destroy(err);
	dp_session_warn_of_left(s);
	dp_session_sweep(s, NULL, NULL);
	dp_session_warn_of_children(s);
}

struct dp_session *dp_session_destroy(struct dp_session *s)
{
	if (!s)
		return NULL;
	give_up_events(s);
	dp_pending_destroy(s->pending);
	sweep_late(s);
	dp_children_fini(&s->children);
	dp_session_aggs_destroy(s->answers);
	dp_target_close(s->target);
	dp_session_sink_fini(s);
	dp_error_destroy(s->unhooked);
	dp_preview_destroy(s->preview);
	dp_session_trap_destroy(s->trap);
	for (size_t i = 0; s->place && i < s->trace->nprobes; i++) {
		dp_error_destroy(s->place[i].refused);
		free(s->place[i].retired_why);
		dp_fields_fini(&s->place[i].fields);
		dp_expr_destroy(s->place[i].when);
	}
	free(s->place);
	free(s->planned);
	free(s->loss);
	free(s);
	return NULL;
}
