/* SPDX-License-Identifier: MIT */
#include "session/run/processes.h"

#include "session/run/starts_internal.h"

#include <stdlib.h>
#include <string.h>

struct dp_error *dp_run_add_session(struct dp_run *run, struct dp_session *s)
{
	struct dp_session **grown = realloc(run->session, (run->nsessions + 1) * sizeof(*grown));
	if (!grown) {
		dp_session_destroy(s);
		return dp_error_nomem();
	}
	run->session = grown;
	run->session[run->nsessions++] = s;
	return NULL;
}

#define SHOWN 10u /* of every process of the machine, those left out that are named */

/* Goes on without the process, unless it is the only one or a signal came. Consumes the error. */
static struct dp_error *leave_out(struct dp_run *run, pid_t pid, struct dp_error *err)
{
	if ((run->trace->npids > 1 || dp_trace_awaits(run->trace)) && dp_trace_found_ended(run->trace, pid, err)) {
		dp_trace_log(run->trace, DP_LOG_INFO, "process %d has ended since it was found", pid);
		dp_error_destroy(err);
		return NULL;
	}
	if ((run->trace->npids < 2 && !dp_trace_awaits(run->trace)) || err->tag == DP_TAG_INTERRUPTED)
		return err;
	if (dp_starts_all_excuses(run, err))
		return NULL;
	struct dp_run_missing *grown = realloc(run->missing, (run->nmissing + 1) * sizeof(*grown));
	if (!grown)
		return err;
	run->missing = grown;
	run->missing[run->nmissing++] = (struct dp_run_missing){pid, err};
	return NULL;
}

static void warn(const struct dp_run *run, const struct dp_run_missing *m)
{
	const struct dp_error *why = m->why;
	dp_trace_log(run->trace, DP_LOG_WARNING, "process %d is left out: %s [%s]", m->pid, why->message, dp_tag_name(why->tag));
	for (why = why->cause; why; why = why->cause)
		dp_trace_log(run->trace, DP_LOG_WARNING, "  because: %s", why->message);
}

/* Fails if no process is left: then the user made a mistake. Otherwise those from `from` on are different from the rest. */
static struct dp_error *check_missing(struct dp_run *run, size_t from)
{
	const bool none = from < run->nmissing && !run->nsessions && !dp_trace_awaits(run->trace);
	if (!run->nmissing && !run->nsessions && run->trace->nfound)
		return dp_error(DP_TAG_NO_PROCESS, "all %zu processes that were found have ended since", run->trace->nfound);
	for (size_t i = from + none; i < run->nmissing && (!run->trace->all || i < SHOWN); i++)
		warn(run, &run->missing[i]);
	return none ? dp_take(run->missing[from].why, NULL) : NULL;
}

static void announce(const struct dp_run *run, const struct dp_session *s)
{
	if (dp_target_inner_pid(s->target))
		dp_trace_log(run->trace, DP_LOG_INFO, "process %d (inner %d): %s, in a pid namespace of its own",
		             dp_target_pid(s->target), dp_target_inner_pid(s->target), dp_target_comm(s->target));
}

static struct dp_error *open_one(struct dp_run *run, pid_t pid)
{
	struct dp_session *s = NULL;
	for (size_t i = 0; i < run->nsessions; i++)
		if (dp_target_pid(run->session[i]->target) == pid)
			return NULL;
	struct dp_error *err = dp_session_open(run->trace, pid, &s);
	if (err)
		return leave_out(run, pid, err);
	DP_TRY(dp_run_add_session(run, s));
	announce(run, s);
	return NULL;
}

struct dp_error *dp_run_open_each(struct dp_run *run)
{
	const size_t before = run->nmissing;
	for (size_t i = 0; i < run->trace->npids; i++)
		DP_TRY(open_one(run, run->trace->pid[i]));
	return check_missing(run, before);
}

struct dp_error *dp_run_open_one(struct dp_run *run, pid_t pid)
{
	const size_t before = run->nmissing;
	DP_TRY(open_one(run, pid));
	return check_missing(run, before);
}

struct dp_error *dp_run_each(struct dp_run *run, struct dp_error *(*act)(struct dp_run *run, struct dp_session *s))
{
	const size_t before = run->nmissing;
	size_t kept = 0;
	struct dp_error *err = NULL;
	for (size_t i = 0; i < run->nsessions; i++) {
		struct dp_session *s = run->session[i];
		struct dp_error *one = err ? NULL : act(run, s);
		if (one && !(err = leave_out(run, dp_target_pid(s->target), one)))
			dp_session_destroy(s);
		else
			run->session[kept++] = s;
	}
	run->nsessions = kept;
	return err ? err : check_missing(run, before);
}
