/* SPDX-License-Identifier: MIT */
/* How a session comes to its target, and what the target tells of itself while it works. */
#include "cli/run/progress.h"
#include "cli/run/signals.h"
#include "cli/session/session.h"
#include "injector/ring/loads.h"

#include <stdlib.h>
#include <string.h>

static void say(const char *line, void *data)
{
	(void)data;
	dp_progress_clear();
	fprintf(stderr, "dynprobe: %s\n", line);
}

/* A further signal, while a first one is answered or the run ends anyway, changes nothing: it takes what it takes. */
static void note_further(const struct dp_options *o, size_t left)
{
	if (!dp_signals_take() || o->quiet)
		return;
	dp_progress_clear();
	fprintf(stderr, "dynprobe: the probes are being taken out: about %zu more\n", left);
}

static bool on_progress(bool removing, size_t done, size_t of, void *data)
{
	const struct dp_session *s = data;
	const size_t all = s->nplanned, some = of ? (size_t)((double)all * (double)done / (double)of) : 0;
	if (of)
		dp_progress(removing ? "taking out" : "placing", some, all);
	if (removing)
		note_further(s->options, all - some);
	return removing || !dp_signals_placing();
}

bool dp_session_counts_stacks(const struct dp_options *o)
{
	return o->asked.by && !strcmp(o->asked.by, "backtrace");
}

bool dp_session_wants_unwind(const struct dp_options *o)
{
	for (size_t i = 0; i < o->nprobes; i++)
		if (dp_fields_unwind(&o->probe[i].fields))
			return true;
	return dp_session_counts_stacks(o);
}

static struct dp_target_options target_options(struct dp_session *s)
{
	const struct dp_options *o = s->options;
	return (struct dp_target_options){
	        .allow_seccomp = o->allow_seccomp,
	        .need_unwind = dp_session_wants_unwind(o),
	        .look = o->dry_run,
	        .gates = o->attach,
	        .ring_size = o->ring_size,
	        .max_memory = o->max_memory,
	        .max_pause_ns = o->snapshot.take.still.max_pause_ns,
	        .verbose = o->verbose ? say : NULL,
	        .progress = on_progress,
	        .progress_data = s,
	};
}

static struct dp_session *session_create(const struct dp_options *o)
{
	struct dp_session *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->options = o;
	return s;
}

struct dp_error *dp_session_open(const struct dp_options *options, pid_t pid, struct dp_session **ret)
{
	struct dp_session *s = session_create(options);
	if (!s)
		return dp_error(DP_TAG_NOMEM, "out of memory for a target");
	const struct dp_target_options to = target_options(s);
	struct dp_error *err = dp_target_open(pid, &to, &s->target);
	if (err)
		dp_session_destroy(s);
	else
		*ret = s;
	return err;
}

struct dp_error *dp_session_launch(const struct dp_options *options, struct dp_session **ret)
{
	struct dp_session *s = session_create(options);
	if (!s)
		return dp_error(DP_TAG_NOMEM, "out of memory for a target");
	const struct dp_target_options to = target_options(s);
	struct dp_error *err = dp_target_launch(options->command, &to, &s->target);
	if (err)
		dp_session_destroy(s);
	else
		*ret = s;
	return err;
}

struct dp_error *dp_session_beside(const struct dp_session *s, struct dp_session **ret)
{
	struct dp_session *later = session_create(s->options);
	struct dp_error *err =
	        later ? dp_target_open_beside(s->target, &later->target) : dp_error(DP_TAG_NOMEM, "out of memory for a target");
	if (err)
		dp_session_destroy(later);
	else
		*ret = later;
	return err;
}
