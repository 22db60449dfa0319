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
#define FLUSH_NS  UINT64_C(200000000)
#define MANY      4096u /* events in a round, after which the next one follows at once */
#define OLD_TRIES 100 /* rounds of --once: all buffered events are older than its start */

struct recorder {
	const struct dp_options *options;
	struct dp_residents *left; /* of each process that is recorded */
	size_t n, failed;          /* failed: processes that are not, or not to their end */
	struct dp_recording r;
	struct dp_outputs out;
	bool cut;            /* it ended early, because its disk is full */
	struct pollfd *wake; /* the signals, and the ends of the processes */
	int signal_fd;
	bool signalled;      /* a signal ends it */
	bool leaving;        /* it has ended, and its output is still to be read */
	bool hurried;        /* a signal came since: what is not read is dropped */
	bool busy;           /* the last round had many events */
	uint64_t flushed_ns; /* when the outputs were flushed last */
};

static void on_event(const struct dp_event *event, void *data)
{
	dp_outputs_event(&((struct recorder *)data)->out, event);
}

static void on_batch(const struct dp_event_batch *batch, void *data)
{
	dp_outputs_batch(&((struct recorder *)data)->out, batch);
}

static bool is_full(void *data)
{
	return dp_outputs_full(&((struct recorder *)data)->out);
}

static bool is_over(const struct recorder *c)
{
	const uint64_t duration = c->options->trace.duration_ns;
	return duration && c->r.start_ns && dp_now_ns() - c->r.start_ns >= duration;
}

static const char *limits(const struct recorder *c, unsigned round)
{
	const struct dp_options *o = c->options;
	if (dp_recording_has_all(&c->r))
		return dp_outputs_full(&c->out) ? "record size" : "hits";
	if (o->once)
		return c->r.found_old && round < OLD_TRIES ? NULL : "once";
	return is_over(c) ? "duration" : NULL;
}

/* Sleeps until the next round, a signal, or the end of a process. */
static void rest(const struct recorder *c)
{
	const uint64_t duration = c->options->trace.duration_ns;
	int ms = c->options->once || c->busy ? 0 : ROUND_MS;
	if (duration && c->r.start_ns + duration < dp_now_ns() + ROUND_NS)
		ms = 1;
	c->wake[0] = (struct pollfd){.fd = c->signal_fd, .events = POLLIN};
	for (size_t i = 0; i < c->n; i++)
		c->wake[i + 1] = (struct pollfd){.fd = c->r.process[i].ended_by ? -1 : dp_target_exit_fd(c->left[i].target),
		                                 .events = POLLIN};
	poll(c->wake, c->n + 1, ms);
}

static bool has_signal(const struct recorder *c)
{
	struct signalfd_siginfo info;
	return read(c->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info);
}

static bool interrupted(struct recorder *c)
{
	if (!c->signalled && !c->r.ended_by)
		c->signalled = has_signal(c);
	return c->signalled;
}

/* Once true, the output no longer waits for its reader (outlet.h). */
static bool must_leave(void *data)
{
	struct recorder *c = data;
	if (!c->leaving)
		return c->r.ended_by || interrupted(c) || is_over(c);
	c->hurried |= has_signal(c);
	return c->hurried;
}

/* One round. While there are many events, their outputs are not flushed after each. */
static struct dp_error *read_rings(struct recorder *c)
{
	const uint64_t before = c->r.total;
	DP_TRY(dp_recording_round(&c->r));
	const uint64_t now = dp_now_ns();
	c->busy = c->r.total - before > MANY;
	if (c->busy && now - c->flushed_ns < FLUSH_NS)
		return NULL;
	c->flushed_ns = now;
	return dp_outputs_flush(&c->out, dp_recording_lost(&c->r));
}

static struct dp_error *loop(struct recorder *c)
{
	struct dp_recording *r = &c->r;
	for (unsigned round = 0; !r->ended_by; round++) {
		const char *signalled = interrupted(c) ? "interrupt" : NULL; /* a whole round follows it */
		DP_TRY(read_rings(c));
		if (!r->ended_by)
			r->ended_by = signalled ? signalled : limits(c, round);
		if (!r->ended_by)
			rest(c);
	}
	DP_TRY(dp_recording_finish(r));
	return dp_outputs_flush(&c->out, dp_recording_lost(r));
}

static struct dp_error *record_steps(struct recorder *c)
{
	DP_TRY(dp_signals_open(&c->signal_fd));
	const struct dp_outputs_reader reader = {must_leave, c, c->signal_fd};
	DP_TRY(dp_outputs_open(c->options, &c->r.classes, dp_residents_comm(&c->left[0]), &reader, &c->out));
	c->r.batch = dp_outputs_takes_batches(&c->out) ? on_batch : NULL;
	if (c->out.record_dir)
		fprintf(stderr, "dynprobe: recording into %s%s\n", c->out.record_dir,
		        c->options->once || c->options->snapshot.core ? "" : "; Ctrl-C ends");
	DP_TRY(dp_recording_serve(&c->r));
	return loop(c);
}

static void summarize(struct recorder *c)
{
	const size_t n = dp_recording_nrows(&c->r);
	dp_auto_free struct dp_summary_probe *probe = calloc(n + 1, sizeof(*probe));
	const struct dp_summary sum = {.probe = probe, .n = n, .ended_by = c->r.ended_by};
	if (!probe)
		return;
	dp_recording_summary(&c->r, probe);
	dp_outputs_summary(&c->out, c->options, &sum);
}

/* What was recorded until the disk was full is there, and a reader that went had enough. */
static struct dp_error *unless_cut(struct recorder *c, struct dp_error *err)
{
	const bool full = dp_outputs_disk_full(err);
	if (!full && !dp_outputs_unread(err))
		return err;
	if (full && !c->cut)
		dp_error_print(err, stderr);
	c->cut |= full;
	c->r.ended_by = c->cut ? "disk full" : "closed output";
	return dp_error_destroy(err);
}

static struct dp_error *record(struct recorder *c)
{
	struct dp_error *err = unless_cut(c, record_steps(c));
	struct dp_error *released = dp_recording_release(&c->r);
	c->leaving = true;
	dp_outputs_rest(&c->out);
	struct dp_error *ended = unless_cut(c, dp_outputs_end(&c->out));
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

/* ---- the processes ------------------------------------------------------------------------------------------------------- */

static struct dp_error *open_one(struct recorder *c, pid_t pid)
{
	struct dp_residents *left = &c->left[c->n];
	const struct dp_options *o = c->options;
	if (o->snapshot.core)
		DP_TRY(dp_residents_open_core(&o->trace, o->snapshot.core, o->nnames ? o->name[0] : NULL, left));
	else
		DP_TRY(dp_residents_open(&o->trace, pid, true, left));
	struct dp_error *err = dp_recording_add(&c->r, left);
	if (err)
		dp_residents_close(left);
	else
		c->n++;
	return err;
}

/* A core file, or processes; of several, those that cannot be recorded are left out. */
static struct dp_error *open_all(struct recorder *c)
{
	const struct dp_trace_spec *trace = &c->options->trace;
	c->left = calloc(trace->npids + 1, sizeof(*c->left));
	c->wake = calloc(trace->npids + 1, sizeof(*c->wake));
	if (!c->left || !c->wake)
		return dp_error_nomem();
	if (c->options->snapshot.core)
		return open_one(c, 0);
	for (size_t i = 0; i < trace->npids; i++) {
		struct dp_error *err = open_one(c, trace->pid[i]);
		if (err && !c->n && i + 1 == trace->npids)
			return err;
		if (err && !dp_trace_found_ended(trace, trace->pid[i], err)) {
			c->failed++;
			dp_error_print(err, stderr);
		}
		dp_error_destroy(err);
	}
	return NULL;
}

static void say_failed(struct recorder *c)
{
	for (size_t i = 0; i < c->r.nprocesses; i++) {
		c->failed += c->r.process[i].failed != NULL;
		dp_error_print(c->r.process[i].failed, stderr);
	}
}

static struct dp_error *run(struct recorder *c)
{
	struct dp_error *err = open_all(c);
	c->r.most = c->options->trace.hits;
	c->r.event = on_event;
	c->r.full = is_full;
	c->r.data = c;
	if (!err)
		err = record(c);
	say_failed(c);
	dp_outputs_fini(&c->out); /* its event classes are the recording's */
	dp_recording_fini(&c->r);
	if (c->signal_fd >= 0)
		close(c->signal_fd);
	for (size_t i = 0; i < c->n; i++)
		dp_residents_close(&c->left[i]);
	free(c->left);
	free(c->wake);
	return err;
}

int dp_command_record(const struct dp_options *options)
{
	struct recorder c = {.options = options, .signal_fd = -1};
	struct dp_error *err = run(&c);
	const int status = err ? DP_EXIT_FAILURE : c.failed || c.cut ? DP_EXIT_PARTIAL : 0;
	dp_error_print(err, stderr);
	dp_error_destroy(err);
	return status;
}
