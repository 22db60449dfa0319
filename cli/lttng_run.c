/* SPDX-License-Identifier: MIT */
#include "cli/lttng_run.h"

#include "output/lttng.h"

#include <stdlib.h>
#include <string.h>

#define LOOK_NS   UINT64_C(1000000000)
#define TALK_NS   UINT64_C(5000000000)
#define LISTED_NS UINT64_C(2000000000)

static struct dp_error *check_targets(const struct dp_run *run)
{
	for (size_t i = 0; i < run->nsessions; i++)
		DP_TRY(dp_target_sink_check(run->session[i]->target));
	return NULL;
}

static void use_lttng(struct dp_run *run)
{
	run->use_lttng = true;
	for (size_t i = 0; i < run->nsessions; i++)
		run->session[i]->lttng = true;
}

/* Nobody asked: the user's own session decides. That it cannot be, or that LTTng is ill, is no reason not to run. */
static void choose_by_session(struct dp_run *run)
{
	bool covers = false;
	struct dp_error *err = dp_lttng_current(&run->lttng_session, &covers, LOOK_NS);
	if (!err && covers)
		err = check_targets(run);
	if (!err && covers) {
		run->lttng_covered = true;
		use_lttng(run);
	} else if (err) {
		fprintf(stderr, "dynprobe: using the embedded recorder: %s [%s]\n", err->message, dp_tag_name(err->tag));
	}
	dp_error_destroy(err);
}

struct dp_error *dp_lttng_choose(struct dp_run *run)
{
	if (run->options->sink == DP_SINK_RING)
		return NULL;
	if (run->options->sink == DP_SINK_AUTO) {
		/* Who wants to see, count or keep the events here has chosen. */
		if (!run->options->own_events)
			choose_by_session(run);
		return NULL;
	}
	DP_TRY(check_targets(run));
	use_lttng(run);
	return NULL;
}

static void say_session(const struct dp_run *run)
{
	const char *name = dp_lttng_session(run->lttng);
	fprintf(stderr, "dynprobe: events go to the LTTng session '%s' (%s)%s%s\n", name,
	        run->lttng_covered             ? "its rules already want dynprobe:*"
	        : dp_lttng_created(run->lttng) ? "created for this run"
	                                       : "as asked",
	        run->options->attach ? "" : "; Ctrl-C ends",
	        dp_lttng_active(run->lttng) ? "" : "; it is not started: lttng start");
	fprintf(stderr, "dynprobe: to look at them: %s\n", dp_lttng_how_to_view(run->lttng));
}

static struct dp_error *enable(struct dp_run *run)
{
	const struct dp_options *o = run->options;
	dp_auto_free const char **names = calloc(o->nprobes + 1, sizeof(*names));
	if (!names)
		return dp_error(DP_TAG_NOMEM, "out of memory for the event names");
	for (size_t i = 0; i < o->nprobes; i++)
		names[i] = o->probe[i].name;
	return dp_lttng_enable(run->lttng, names, o->nprobes, o->filter);
}

struct dp_error *dp_lttng_begin(struct dp_run *run)
{
	const struct dp_options *o = run->options;
	const struct dp_lttng_options lo = {
	        .session = run->lttng_covered ? run->lttng_session : o->session,
	        .set_url = o->set_url,
	        .live_us = o->live_us,
	        .name = dp_target_comm(run->session[0]->target),
	        .timeout_ns = TALK_NS,
	};
	DP_TRY(dp_lttng_open(&lo, &run->lttng));
	free(run->lttng_session);
	run->lttng_session = strdup(dp_lttng_session(run->lttng));
	if (!run->lttng_covered)
		DP_TRY(enable(run));
	DP_TRY(dp_lttng_start(run->lttng));
	say_session(run);
	return NULL;
}

void dp_lttng_settle(struct dp_run *run)
{
	const struct dp_options *o = run->options;
	dp_auto_free const char **names = calloc(o->nprobes + 1, sizeof(*names));
	for (size_t i = 0; names && i < o->nprobes; i++)
		names[i] = o->probe[i].name;
	for (size_t k = 0; names && k < run->nsessions; k++) {
		const pid_t pid = dp_target_pid(run->session[k]->target);
		if (!dp_lttng_wait_listed(run->lttng, pid, names, o->nprobes, LISTED_NS))
			fprintf(stderr, "dynprobe: the session daemon does not list the events of %d yet\n", pid);
	}
}

struct dp_error *dp_lttng_end(struct dp_run *run)
{
	struct dp_lttng *l = run->lttng;
	run->lttng = NULL;
	if (!l || !run->options->attach)
		return dp_lttng_close(l, l && dp_lttng_created(l));
	dp_lttng_release(l);
	return NULL;
}
