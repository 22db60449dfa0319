/* SPDX-License-Identifier: MIT */
#include "session/process/session_full.h"

#include "session/process/pending.h"

#include <stdio.h>

static void say(const struct dp_session *s, pid_t pid, const char *what)
{
	char line[256];
	snprintf(line, sizeof(line), "process %d is now under a seccomp filter: %s", pid, what);
	s->trace->calls->note(line, s->trace->calls->run_data);
}

void dp_session_full_round(struct dp_session *s)
{
	const bool all = dp_target_is_caged(s->target);
	const pid_t child = dp_target_caged_child(s->target);
	if (!s->trace->block_ns && !s->trace->overwrite)
		return;
	if (all && !s->said_caged && s->trace->overwrite)
		say(s, dp_target_pid(s->target), "its rings are not overwritten any more; those that are full lose new events");
	else if (all && !s->said_caged)
		say(s, dp_target_pid(s->target), "its hits do not wait for room any more");
	else if (child && !all && !s->said_caged_child)
		say(s, child, "hits of fork children do not wait for room any more");
	s->said_caged |= all;
	s->said_caged_child |= child != 0;
}

/* Nobody can sleep on words of several processes before Linux 5.16: then waiting hits are looked for. */
int dp_session_full_rest(struct dp_session *const *session, size_t n, int ms)
{
	if (!n || !session[0]->trace->block_ns)
		return ms;
	if (n > 1 || session[0]->ended)
		return ms > 1 ? 1 : ms;
	dp_target_rest(session[0]->target, ms);
	return 0;
}

void dp_session_full_leave(struct dp_session *s)
{
	struct dp_remove_report report;
	if (!s->trace->block_ns || s->ended)
		return;
	dp_error_destroy(dp_target_restore(s->target, &report)); /* the removal tries again, and tells */
	report.left_bytes = report.left_sites = 0;
	dp_session_note_removal(s, &report);
}

void dp_session_full_count(const struct dp_session *s, struct dp_full_counts *sum)
{
	struct dp_full_counts one;
	dp_target_full_counts(s->target, &one);
	sum->hits += one.hits;
	sum->late += one.late;
	sum->ns += one.ns;
	dp_pending_full(s, sum);
}
