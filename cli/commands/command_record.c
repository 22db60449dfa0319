/* SPDX-License-Identifier: MIT */
#include "cli/commands/command.h"
#include "cli/run/outputs.h"
#include "cli/run/signals.h"
#include "injector/tracee/tracee.h"
#include "session/recording/recording.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define ROUND_MS  10
#define ROUND_NS  UINT64_C(10000000)
#define OLD_TRIES 100 /* rounds of --once: all buffered events are older than its start */

struct recorder {
	const struct dp_options *options;
	struct dp_recording r;
	struct dp_outputs out;
	int signal_fd;
};

static void on_event(const struct dp_event *event, void *data)
{
	dp_outputs_event(&((struct recorder *)data)->out, event);
}

static const char *limits(const struct recorder *c, unsigned round)
{
	const struct dp_options *o = c->options;
	if (dp_recording_has_all(&c->r))
		return "hits";
	if (o->once)
		return c->r.found_old && round < OLD_TRIES ? NULL : "once";
	return o->trace.duration_ns && dp_now_ns() - c->r.start_ns >= o->trace.duration_ns ? "duration" : NULL;
}

/* Sleeps until the next round, a signal, or the end of the process. */
static void rest(const struct recorder *c)
{
	struct pollfd p[2] = {{.fd = c->signal_fd, .events = POLLIN},
	                      {.fd = dp_target_exit_fd(c->r.left->target), .events = POLLIN}};
	const uint64_t duration = c->options->trace.duration_ns;
	int ms = c->options->once ? 0 : ROUND_MS;
	if (duration && c->r.start_ns + duration < dp_now_ns() + ROUND_NS)
		ms = 1;
	poll(p, 2, ms);
}

static bool interrupted(const struct recorder *c)
{
	struct signalfd_siginfo info;
	return read(c->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info);
}

static struct dp_error *loop(struct recorder *c)
{
	struct dp_recording *r = &c->r;
	for (unsigned round = 0; !r->ended_by; round++) {
		const char *signalled = interrupted(c) ? "interrupt" : NULL;
		DP_TRY(dp_recording_round(r));
		DP_TRY(dp_outputs_flush(&c->out, dp_recording_lost(r)));
		if (!r->ended_by)
			r->ended_by = signalled ? signalled : limits(c, round);
		if (!r->ended_by)
			rest(c);
	}
	return dp_recording_finish(r);
}

static struct dp_error *record_steps(struct recorder *c)
{
	DP_TRY(dp_signals_open(&c->signal_fd));
	DP_TRY(dp_outputs_open(c->options, &c->r.classes, dp_target_comm(c->r.left->target), NULL, &c->out));
	if (c->out.record_dir)
		fprintf(stderr, "dynprobe: recording into %s%s\n", c->out.record_dir, c->options->once ? "" : "; Ctrl-C ends");
	DP_TRY(dp_recording_serve(&c->r));
	return loop(c);
}

static void summarize(struct recorder *c)
{
	dp_auto_free struct dp_summary_probe *probe = calloc(c->r.classes.nprobes + 1, sizeof(*probe));
	const struct dp_summary sum = {
	        .probe = probe, .n = c->r.classes.nprobes, .record_dir = c->out.record_dir, .ended_by = c->r.ended_by};
	if (!probe)
		return;
	dp_recording_summary(&c->r, probe);
	dp_outputs_summary(&c->out, c->options, &sum);
}

static struct dp_error *record(struct recorder *c)
{
	struct dp_error *err = record_steps(c);
	const bool is_gone = dp_recording_gone(&c->r);
	struct dp_error *released = dp_recording_release(&c->r), *ended = dp_outputs_end(&c->out);
	if (is_gone)
		released = dp_error_destroy(released);
	if (!err)
		summarize(c);
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
	struct dp_residents left = {0};
	struct recorder c = {.options = options, .signal_fd = -1};
	struct dp_error *err = dp_residents_open(&options->trace, options->trace.pid[0], true, &left);
	if (!err)
		err = dp_recording_open(&left, &c.r);
	c.r.most = options->trace.hits;
	c.r.event = on_event;
	c.r.data = &c;
	if (!err)
		err = record(&c);
	dp_outputs_fini(&c.out); /* its event classes are the recording's */
	dp_recording_fini(&c.r);
	if (c.signal_fd >= 0)
		close(c.signal_fd);
	dp_residents_close(&left);
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
