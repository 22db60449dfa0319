/* SPDX-License-Identifier: MIT */
#include "cli/run/profile.h"

#include "cli/run/aggregations.h"
#include "cli/run/signals.h"
#include "injector/tracee/tracee.h"
#include "session/profile/sampler.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUND_MS 10
#define WAIT_MS  1000

struct profile {
	const struct dp_options *o;
	struct dp_trace_spec shown; /* the one event class, as the outputs take it */
	struct dp_probe probe;
	struct dp_typed typed;
	struct dp_sampled_command command;
	int signal_fd;
	struct dp_sampler s;
	struct dp_outputs out;
	uint64_t start_ns, end_ns;
	const char *ended_by;
	bool gone_on; /* the command runs on its own */
};

static void on_event(const struct dp_event *event, void *data)
{
	dp_outputs_event(&((struct profile *)data)->out, event);
}

/* ---- the run ------------------------------------------------------------------------------------------------------- */

static struct dp_error *make_class(struct profile *p)
{
	p->probe.name = strdup("profile");
	p->probe.spec.text = strdup("--profile");
	if (!p->probe.name || !p->probe.spec.text)
		return dp_error_nomem();
	p->shown.probe = &p->probe;
	p->shown.typed = &p->typed;
	p->shown.nprobes = 1;
	return dp_fields_add(&p->probe.fields, "backtrace:127");
}

static struct dp_error *open_outputs(struct profile *p)
{
	DP_TRY(make_class(p));
	if (p->o->trace.asked.what)
		DP_TRY(dp_stacks_create(&p->s.stacks));
	return dp_outputs_open(p->o, &p->shown, p->s.comm, NULL, &p->out);
}

static void say_what(const struct profile *p)
{
	if (p->o->quiet && !p->out.record_dir)
		return;
	fprintf(stderr, "dynprobe: sampling %d (%s) %u times a second of CPU time%s%s; Ctrl-C ends\n", p->s.pid, p->s.comm,
	        p->o->profile_hz, p->out.record_dir ? ", recording into " : "", p->out.record_dir ? p->out.record_dir : "");
}

static struct dp_error *open_process(struct profile *p)
{
	char **command = p->o->trace.command;
	p->s = (struct dp_sampler){.pid_fd = -1, .starts = command, .most = p->o->trace.hits, .event = on_event, .data = p};
	if (command)
		DP_TRY(dp_sampled_command_start(&p->command, command)); /* before our signals are blocked */
	p->s.pid = command ? p->command.pid : dp_samples_leader(p->o->trace.pid[0]);
	DP_TRY(dp_signals_open(&p->signal_fd));
	p->s.pid_fd = (int)syscall(SYS_pidfd_open, p->s.pid, 0);
	if (p->s.pid_fd < 0)
		return dp_error_sys(DP_TAG_NO_PROCESS, "process %d", p->s.pid);
	DP_TRY(dp_sampler_open(&p->s, p->o->profile_hz));
	if (!command)
		return dp_sampler_look(&p->s);
	/* After exec it has the name of its file. */
	const char *slash = strrchr(command[0], '/');
	snprintf(p->s.comm, sizeof(p->s.comm), "%.15s", slash ? slash + 1 : command[0]);
	return NULL;
}

static struct dp_error *begin(struct profile *p)
{
	DP_TRY(open_process(p));
	DP_TRY(open_outputs(p)); /* the command must not run before its samples can be kept */
	if (p->o->trace.command)
		DP_TRY(dp_sampled_command_go(&p->command, p->o->trace.command[0]));
	p->gone_on = p->o->trace.command;
	say_what(p);
	return p->gone_on ? dp_sampler_look(&p->s) : NULL;
}

static void wait_round(struct profile *p)
{
	struct pollfd fd[2] = {{.fd = p->signal_fd, .events = POLLIN}, {.fd = p->s.pid_fd, .events = POLLIN}};
	struct signalfd_siginfo info;
	poll(fd, 2, ROUND_MS);
	if (fd[0].revents && read(p->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		p->ended_by = "interrupt";
	else if (fd[1].revents)
		p->ended_by = "target exited";
	else if (p->o->trace.duration_ns && dp_now_ns() - p->start_ns >= p->o->trace.duration_ns)
		p->ended_by = "duration";
}

static struct dp_error *loop(struct profile *p)
{
	p->start_ns = dp_now_ns();
	if (!p->o->trace.command)
		DP_TRY(dp_samples_start(p->s.samples));
	while (!p->ended_by) {
		wait_round(p);
		dp_sampler_drain(&p->s);
		if (dp_sampler_has_all(&p->s))
			p->ended_by = "hits";
		DP_TRY(dp_outputs_flush(&p->out, 0));
	}
	dp_samples_stop(p->s.samples);
	p->end_ns = dp_now_ns();
	dp_sampler_drain(&p->s);
	struct dp_samples_stats stats;
	dp_samples_stats(p->s.samples, &stats);
	return dp_outputs_flush(&p->out, stats.lost);
}

/* ---- the end ------------------------------------------------------------------------------------------------------- */

static void report_json(const struct profile *p, const struct dp_samples_stats *s, double seconds)
{
	fprintf(p->out.file,
	        "{\"type\":\"profile\",\"version\":1,\"pid\":%d,\"hz\":%u,\"seconds\":%.3f,\"samples\":%llu,\"lost\":%llu,"
	        "\"throttled\":%llu,\"foreign\":%llu,\"cut\":%llu,\"crowded\":%llu,\"stale\":%llu,\"unnamed\":%llu,"
	        "\"children\":%llu,\"user_only\":%s,\"ended_by\":\"%s\"}\n",
	        p->s.pid, p->o->profile_hz, seconds, (unsigned long long)p->s.taken, (unsigned long long)s->lost,
	        (unsigned long long)s->throttled, (unsigned long long)s->foreign, (unsigned long long)p->s.cut,
	        (unsigned long long)p->s.crowded, (unsigned long long)p->s.stale, (unsigned long long)dp_sampler_unnamed(&p->s),
	        (unsigned long long)s->children, s->user_only ? "true" : "false", p->ended_by);
}

static void put_count(uint64_t n, const char *what)
{
	if (n)
		fprintf(stderr, ", %llu %s", (unsigned long long)n, what);
}

static void report_text(const struct profile *p, const struct dp_samples_stats *s, double seconds)
{
	fprintf(stderr, "dynprobe: %llu samples in %.3f s", (unsigned long long)p->s.taken, seconds);
	put_count(s->lost, "lost (the rings were full)");
	put_count(s->throttled, "times throttled by the kernel");
	put_count(s->foreign, "without a 64-bit context");
	put_count(p->s.cut, "cut (more than 32 KiB of stack, a page of it that was not in memory, or more than 126 frames)");
	put_count(p->s.crowded, "not counted (too many different stacks)");
	put_count(p->s.stale, "of code mapped since the last look (names may be outdated)");
	put_count(dp_sampler_unnamed(&p->s), "without names (their code was gone)");
	put_count(s->children, "child processes not sampled");
	fprintf(stderr, "; %s%s\n", p->ended_by, s->user_only ? "; without time in the kernel (kernel.perf_event_paranoid)" : "");
}

static struct dp_error *show_stacks(const struct profile *p, double seconds)
{
	struct dp_stack_rows rows;
	DP_TRY(dp_stacks_rows(p->s.stacks, &p->s.images, p->s.pid, &rows));
	dp_aggs_print(p->o,
	              &(struct dp_aggs_shown){.what = DP_AGG_COUNT,
	                                      .by = "backtrace",
	                                      .top = p->o->trace.asked.top,
	                                      .seconds = seconds,
	                                      .row = rows.row,
	                                      .n = rows.n},
	              p->out.file);
	dp_stack_rows_fini(&rows);
	return NULL;
}

static struct dp_error *end(struct profile *p)
{
	const double seconds = (double)(p->end_ns - p->start_ns) / 1e9;
	struct dp_samples_stats stats;
	dp_samples_stats(p->s.samples, &stats);
	DP_TRY(dp_outputs_end(&p->out));
	if (p->s.stacks)
		DP_TRY(show_stacks(p, seconds));
	if (p->o->format == DP_FORMAT_JSON)
		report_json(p, &stats, seconds);
	struct dp_error *err = fflush(p->out.file)   ? dp_error_sys(DP_TAG_OUTPUT, "writing the samples")
	                       : ferror(p->out.file) ? dp_error(DP_TAG_OUTPUT, "some samples could not be written")
	                                             : NULL;
	report_text(p, &stats, seconds);
	return err;
}

static void fini(struct profile *p)
{
	dp_error_destroy(dp_outputs_end(&p->out));
	dp_outputs_fini(&p->out);
	dp_sampler_fini(&p->s);
	dp_sampled_command_fini(&p->command);
	dp_probe_fini(&p->probe);
	if (p->s.pid_fd >= 0)
		close(p->s.pid_fd);
	if (p->signal_fd >= 0)
		close(p->signal_fd);
}

/* The command's own status, as in a run with probes. A signal ends the wait, and the command goes on. */
static int status_of_command(const struct profile *p)
{
	struct pollfd fd[2] = {{.fd = p->s.pid_fd, .events = POLLIN}, {.fd = p->signal_fd, .events = POLLIN}};
	struct signalfd_siginfo info;
	int status;
	pid_t ended;
	if (!p->gone_on)
		return 0;
	while (!(ended = waitpid(p->s.pid, &status, WNOHANG))) {
		poll(fd, 2, WAIT_MS);
		if (read(p->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info) && info.ssi_pid)
			return 0;
	}
	if (ended != p->s.pid)
		return 0;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int dp_profile(const struct dp_options *options)
{
	struct profile p = {.o = options, .command = {.go = -1, .told = -1}, .s = {.pid_fd = -1}, .signal_fd = -1};
	struct dp_error *err = begin(&p);
	if (!err)
		err = loop(&p);
	if (!err)
		err = end(&p);
	int status = !err                      ? 0
	             : err->tag != DP_TAG_EXEC ? DP_EXIT_FAILURE
	             : err->sys == ENOENT      ? DP_EXIT_NOT_FOUND
	                                       : DP_EXIT_CANNOT_RUN;
	dp_error_print(err, stderr);
	if (err && p.s.samples)
		dp_samples_stop(p.s.samples);
	if (err && err->tag == DP_TAG_EXEC)
		dp_outputs_discard(&p.out);
	const int of_command = status_of_command(&p);
	if (!err)
		status = of_command;
	dp_error_destroy(err);
	fini(&p);
	return status;
}
