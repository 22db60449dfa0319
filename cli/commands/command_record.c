/* SPDX-License-Identifier: MIT */
/*
 * record: for as long as it runs, the rings that probes were left with have a reader again, and full ones keep their oldest
 * records; before and after, they keep the newest (a flight recorder). No thread of the process is held.
 */
#include "cli/commands/command.h"
#include "cli/run/recording/recording.h"
#include "cli/run/signals.h"
#include "injector/tracee/tracee.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define ROUND_MS  10
#define ROUND_NS  UINT64_C(10000000)
#define OLD_TRIES 100 /* rounds of --once: what is held is older than its start */

static struct dp_error *release(struct dp_recording *r)
{
	struct dp_error *first = NULL;
	for (size_t k = 0; k < r->ngroups; k++) {
		struct dp_error *err = r->group[k].served ? dp_resident_release(r->group[k].left->standing) : NULL;
		r->group[k].served = false;
		if (first)
			dp_error_destroy(err);
		else
			first = err;
	}
	return first;
}

static struct dp_error *serve(struct dp_recording *r)
{
	r->start_ns = dp_now_ns();
	for (size_t k = 0; k < r->ngroups; k++) {
		DP_TRY(dp_resident_serve(r->group[k].left->standing));
		r->group[k].served = true;
	}
	return NULL;
}

static bool gone(const struct dp_recording *r)
{
	struct pollfd p = {.fd = dp_target_exit_fd(r->left->target), .events = POLLIN};
	return poll(&p, 1, 0) == 1;
}

static const char *limits(const struct dp_recording *r, unsigned round)
{
	const struct dp_options *o = r->options;
	if (dp_recording_has_all(r))
		return "hits";
	if (o->once)
		return r->found_old && round < OLD_TRIES ? NULL : "once";
	return o->trace.duration_ns && dp_now_ns() - r->start_ns >= o->trace.duration_ns ? "duration" : NULL;
}

/* Sleeps until the next round; what a signal or the process's end says, or NULL. */
static void rest(const struct dp_recording *r)
{
	struct pollfd p[2] = {{.fd = r->signal_fd, .events = POLLIN},
	                      {.fd = dp_target_exit_fd(r->left->target), .events = POLLIN}};
	int ms = r->options->once ? 0 : ROUND_MS;
	if (r->options->trace.duration_ns && r->start_ns + r->options->trace.duration_ns < dp_now_ns() + ROUND_NS)
		ms = 1;
	poll(p, 2, ms);
}

static bool interrupted(const struct dp_recording *r)
{
	struct signalfd_siginfo info;
	return read(r->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info);
}

static uint64_t lost(struct dp_recording *r)
{
	uint64_t sum = 0;
	for (size_t k = 0; k < r->ngroups; k++)
		for (unsigned i = 0; i < r->group[k].left->manifest.n; i++) {
			struct dp_loss l = {0};
			dp_resident_loss(r->group[k].left->standing, i, &l);
			sum += dp_loss_sum(&l);
		}
	return sum;
}

/* A process that called exec has nothing left to drain, and no end either; one that is ending is not read any more. */
static struct dp_error *one_round(struct dp_recording *r)
{
	const bool last = gone(r);
	struct dp_error *err = dp_recording_drain(r, last);
	if (last || (err && gone(r)))
		r->ended_by = "target exited";
	else if (err && err->tag == DP_TAG_GONE)
		r->ended_by = "target called exec";
	if (err && !r->ended_by)
		return err;
	dp_error_destroy(err);
	return dp_outputs_flush(&r->out, lost(r));
}

static struct dp_error *loop(struct dp_recording *r)
{
	for (unsigned round = 0; !r->ended_by; round++) {
		const char *signalled = interrupted(r) ? "interrupt" : NULL;
		DP_TRY(one_round(r));
		if (!r->ended_by)
			r->ended_by = signalled ? signalled : limits(r, round);
		if (!r->ended_by)
			rest(r);
	}
	return dp_recording_finish(r);
}

static struct dp_error *record_steps(struct dp_recording *r)
{
	DP_TRY(dp_signals_open(&r->signal_fd));
	DP_TRY(dp_outputs_open(r->options, &r->classes, dp_target_comm(r->left->target), NULL, &r->out));
	if (r->out.record_dir)
		fprintf(stderr, "dynprobe: recording into %s%s\n", r->out.record_dir, r->options->once ? "" : "; Ctrl-C ends");
	DP_TRY(serve(r));
	return loop(r);
}

static struct dp_error *record(struct dp_recording *r)
{
	struct dp_error *err = record_steps(r);
	const bool is_gone = gone(r);
	struct dp_error *released = release(r), *ended = dp_outputs_end(&r->out);
	if (is_gone)
		released = dp_error_destroy(released);
	if (!err)
		dp_recording_summary(r);
	if (!err)
		err = dp_take(released, NULL);
	if (!err)
		err = dp_take(ended, NULL);
	dp_error_destroy(released);
	dp_error_destroy(ended);
	return err;
}

static struct dp_error *run(const struct dp_options *options)
{
	struct dp_left left = {0};
	struct dp_recording r = {.signal_fd = -1};
	if (options->trace.npids != 1)
		return dp_error(DP_TAG_USAGE, "dynprobe record takes one --pid at a time");
	struct dp_error *err = dp_left_open(&options->trace, options->trace.pid[0], true, &left);
	if (!err)
		err = dp_recording_open(options, &left, &r);
	if (!err)
		err = record(&r);
	dp_recording_fini(&r);
	dp_left_close(&left);
	return err;
}

int dp_command_record(const struct dp_options *options)
{
	struct dp_error *err = run(options);
	const int status = err ? DP_EXIT_FAILURE : 0;
	dp_error_print(err, stderr);
	dp_error_destroy(err);
	return status;
}
