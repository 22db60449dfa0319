/* SPDX-License-Identifier: MIT */
#include "cli/profile/profile_internal.h"

#include "cli/run/aggregations.h"
#include "cli/run/signals.h"
#include "injector/tracee/tracee.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUND_MS 10
#define WAIT_MS  1000

static void on_event(const struct dp_event *event, void *data)
{
	dp_outputs_event(&((struct profile *)data)->out, event);
}

/* ---- the run ------------------------------------------------------------------------------------------------------- */

static struct dp_error *add_duration(struct dp_fields *fields)
{
	const struct dp_field field = {
	        .name = strdup("duration"), .type = DP_TYPE_UINT, .size = sizeof(uint64_t), .display = DP_DISPLAY_DURATION};
	struct dp_field *grown = field.name ? realloc(fields->field, (fields->n + 1) * sizeof(field)) : NULL;
	if (!grown) {
		free(field.name);
		return dp_error_nomem();
	}
	fields->field = grown;
	fields->field[fields->n++] = field;
	return NULL;
}

static struct dp_error *make_class(struct profile *p)
{
	p->probe.name = strdup("profile");
	p->probe.spec.text = strdup("--profile");
	if (!p->probe.name || !p->probe.spec.text)
		return dp_error_nomem();
	p->shown.probe = &p->probe;
	p->shown.typed = &p->typed;
	p->shown.nprobes = 1;
	DP_TRY(dp_fields_add(&p->probe.fields, "backtrace:127"));
	return p->o->off_cpu ? add_duration(&p->probe.fields) : NULL;
}

static bool wants_stacks(const struct profile *p)
{
	return p->o->trace.asked.what && dp_asked_is_by(&p->o->trace.asked, DP_KEY_STACK);
}

static void drop_event(const struct dp_event *event, void *data)
{
	(void)event;
	(void)data;
}

static bool has_signal(const struct profile *p)
{
	struct signalfd_siginfo info;
	return read(p->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info);
}

static bool interrupted(struct profile *p)
{
	if (!p->ended_by && has_signal(p))
		p->ended_by = "interrupt";
	return p->ended_by;
}

static bool is_over(const struct profile *p)
{
	const uint64_t duration = p->o->trace.duration_ns;
	return duration && p->start_ns && dp_now_ns() - p->start_ns >= duration;
}

/* Once true, the output no longer waits for its reader (outlet.h). */
static bool must_leave(void *data)
{
	struct profile *p = data;
	if (!p->leaving)
		return interrupted(p) || is_over(p);
	p->hurried |= has_signal(p);
	return p->hurried;
}

static struct dp_error *open_outputs(struct profile *p)
{
	const struct dp_outputs_reader reader = {must_leave, p, p->signal_fd};
	DP_TRY(dp_flame_place(p->o));
	DP_TRY(make_class(p));
	for (size_t i = 0; i < p->n && wants_stacks(p); i++)
		DP_TRY(dp_stacks_create(&p->item[i].s.stacks));
	return dp_outputs_open(p->o, &p->shown, p->item[0].s.comm, &reader, &p->out);
}

static void say_what(const struct profile *p)
{
	if (p->o->quiet && !p->out.record_dir)
		return;
	fputs(p->o->off_cpu ? "dynprobe: watching where threads wait in " : "dynprobe: sampling ", stderr);
	for (size_t i = 0; i < p->n; i++)
		fprintf(stderr, "%s%d (%s)", i ? ", " : "", p->item[i].s.pid, p->item[i].s.comm);
	if (!p->o->off_cpu)
		fprintf(stderr, " %u times a second of CPU time", p->o->profile_hz);
	fprintf(stderr, "%s%s; Ctrl-C ends\n", p->out.record_dir ? ", recording into " : "",
	        p->out.record_dir ? p->out.record_dir : "");
}

static void close_one(struct dp_sampler *s)
{
	dp_sampler_fini(s);
	if (s->pid_fd >= 0)
		close(s->pid_fd);
}

static struct dp_error *open_steps(const struct profile *p, struct dp_sampler *s)
{
	s->pid_fd = (int)syscall(SYS_pidfd_open, s->pid, 0);
	if (s->pid_fd < 0)
		return dp_error_sys(DP_TAG_NO_PROCESS, "process %d", s->pid);
	DP_TRY(dp_sampler_open(s, p->o->profile_hz));
	return s->starts ? NULL : dp_sampler_look(s);
}

static bool has(const struct profile *p, pid_t pid)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->item[i].s.pid == pid)
			return true;
	return false;
}

static struct dp_error *open_one(struct profile *p, pid_t pid)
{
	struct dp_sampler *s = &p->item[p->n].s;
	if (has(p, pid)) /* threads of one process were named */
		return NULL;
	*s = (struct dp_sampler){.pid = pid,
	                         .pid_fd = -1,
	                         .off_cpu = p->o->off_cpu,
	                         .starts = p->o->trace.command,
	                         .event = p->o->trace.asked.what ? drop_event : on_event,
	                         .data = p};
	struct dp_error *err = open_steps(p, s);
	if (err)
		close_one(s);
	else
		p->n++;
	return err;
}

/* Of several processes, those that cannot be sampled are left out. */
static void leave_out(struct profile *p, pid_t pid, struct dp_error *err)
{
	if (!dp_trace_found_ended(&p->o->trace, pid, err)) {
		p->failed++;
		err = dp_error_wrap(err, "process %d is left out", pid);
		dp_error_print(err, stderr);
	}
	dp_error_destroy(err);
}

static struct dp_error *open_running(struct profile *p)
{
	const struct dp_trace_spec *trace = &p->o->trace;
	for (size_t i = 0; i < trace->npids; i++) {
		struct dp_error *err = open_one(p, dp_samples_leader(trace->pid[i]));
		if (err && !p->n && i + 1 == trace->npids)
			return err;
		if (err)
			leave_out(p, trace->pid[i], err);
	}
	return NULL;
}

static struct dp_error *open_command(struct profile *p)
{
	const char *name = p->o->trace.command[0], *slash = strrchr(name, '/');
	DP_TRY(open_one(p, p->command.pid));
	/* After exec it has the name of its file. */
	snprintf(p->item[0].s.comm, sizeof(p->item[0].s.comm), "%.15s", slash ? slash + 1 : name);
	return NULL;
}

static struct dp_error *open_processes(struct profile *p)
{
	char **command = p->o->trace.command;
	const size_t most = command ? 1 : p->o->trace.npids;
	p->item = calloc(most, sizeof(*p->item));
	p->wake = calloc(2 * most + 1, sizeof(*p->wake));
	if (!p->item || !p->wake)
		return dp_error_nomem();
	if (command)
		DP_TRY(dp_sampled_command_start(&p->command, command)); /* before our signals are blocked */
	DP_TRY(dp_signals_open(&p->signal_fd));
	return command ? open_command(p) : open_running(p);
}

static struct dp_error *begin(struct profile *p)
{
	DP_TRY(open_processes(p));
	DP_TRY(open_outputs(p)); /* the command must not run before its samples can be kept */
	if (p->o->trace.command)
		DP_TRY(dp_sampled_command_go(&p->command, p->o->trace.command[0]));
	p->gone_on = p->o->trace.command;
	say_what(p);
	return p->gone_on ? dp_sampler_look(&p->item[0].s) : NULL;
}

/* Notes which processes have ended. Their last samples are still to be read. */
static void wait_round(struct profile *p)
{
	size_t alive = 0;
	p->wake[0] = (struct pollfd){.fd = p->signal_fd, .events = POLLIN};
	for (size_t i = 0; i < p->n; i++) {
		p->wake[i + 1] = (struct pollfd){.fd = p->item[i].ended ? -1 : p->item[i].s.pid_fd, .events = POLLIN};
		p->wake[p->n + i + 1] = (struct pollfd){.fd = dp_samples_wake_fd(p->item[i].s.samples), .events = POLLIN};
	}
	poll(p->wake, 2 * p->n + 1, ROUND_MS);
	for (size_t i = 0; i < p->n; i++) {
		p->item[i].ended |= p->wake[i + 1].revents != 0;
		alive += !p->item[i].ended;
	}
	if (interrupted(p))
		return;
	if (!alive)
		p->ended_by = "target exited";
	else if (is_over(p))
		p->ended_by = "duration";
}

/* -n is the number of all samples. */
static void drain(struct profile *p, bool last)
{
	const uint64_t most = p->o->trace.hits;
	for (size_t i = 0; i < p->n; i++) {
		struct dp_sampler *s = &p->item[i].s;
		const uint64_t others = dp_profile_taken(p) - s->taken;
		if (most && others >= most)
			continue;
		s->most = most ? most - others : 0;
		if (last)
			dp_sampler_end(s);
		else
			dp_sampler_drain(s);
	}
	if (most && dp_profile_taken(p) >= most)
		p->ended_by = "hits";
}

static struct dp_error *start(struct profile *p)
{
	for (size_t i = 0; i < p->n; i++)
		DP_TRY(dp_sampler_start(&p->item[i].s));
	return NULL;
}

static void stop(struct profile *p)
{
	for (size_t i = 0; i < p->n; i++)
		dp_sampler_stop(&p->item[i].s);
	p->leaving = true;
}

static struct dp_error *loop(struct profile *p)
{
	p->start_ns = dp_now_ns();
	DP_TRY(start(p));
	while (!p->ended_by) {
		wait_round(p);
		drain(p, false);
		DP_TRY(dp_outputs_flush(&p->out, 0));
		if (!p->ended_by && dp_outputs_full(&p->out))
			p->ended_by = "record size";
	}
	stop(p);
	p->end_ns = dp_now_ns();
	const char *why = p->ended_by;
	drain(p, true);
	p->ended_by = why;
	struct dp_samples_stats stats;
	dp_profile_stats(p, &stats);
	return dp_outputs_flush(&p->out, stats.lost);
}

/* ---- the end ------------------------------------------------------------------------------------------------------- */

static struct dp_error *draw_flame(const struct profile *p, const struct dp_aggs_shown *shown)
{
	struct dp_buf program = {0};
	for (size_t i = 0; i < p->n; i++)
		dp_flame_process(&program, i, p->item[i].s.comm, p->item[i].s.pid);
	const struct dp_flame_about about = {.program = dp_buf_str(&program),
	                                     .what = p->o->off_cpu ? "time off the processor" : "samples of processor time",
	                                     .unit = "samples",
	                                     .empty = p->o->off_cpu ? "no wait ended while it was watched" : DP_PROFILE_IDLE};
	struct dp_error *err = dp_aggs_flame(p->o, shown, &about);
	dp_buf_fini(&program);
	return err;
}

static struct dp_error *print_rows(const struct profile *p, double seconds, const struct dp_agg_row *row, size_t n)
{
	struct dp_aggs_shown shown = dp_asked_shown(&p->o->trace.asked);
	shown.seconds = seconds;
	shown.sources = p->out.sources;
	shown.hits_title = p->o->off_cpu ? "waits" : "samples";
	shown.sum_title = "time";
	shown.nameless = true;
	shown.row = row;
	shown.n = n;
	dp_aggs_print(p->o, &shown, p->out.file);
	return draw_flame(p, &shown);
}

static struct dp_error *show_stacks(const struct profile *p, double seconds)
{
	struct dp_stack_rows rows;
	dp_auto_free struct dp_stacks_of *of = calloc(p->n, sizeof(*of));
	for (size_t i = 0; of && i < p->n; i++)
		of[i] = (struct dp_stacks_of){p->item[i].s.stacks, &p->item[i].s.images};
	if (!of)
		return dp_error_nomem();
	DP_TRY(dp_stacks_rows(of, p->n, p->n > 1 ? 0 : p->item[0].s.pid, &rows));
	struct dp_error *err = print_rows(p, seconds, rows.row, rows.n);
	dp_stack_rows_fini(&rows);
	return err;
}

static struct dp_error *show_pids(const struct profile *p, double seconds)
{
	dp_auto_free struct dp_agg_row *row = calloc(p->n, sizeof(*row));
	dp_auto_free uint64_t *cells = calloc(p->n, DP_AGG_WORDS * sizeof(*cells));
	for (size_t i = 0; row && cells && i < p->n; i++) {
		uint64_t *cell = cells + i * DP_AGG_WORDS;
		const struct dp_sampler *s = &p->item[i].s;
		cell[DP_AGG_WORD_COUNT] = s->taken;
		cell[DP_AGG_WORD_SUM] = s->times.ns;
		row[i] = (struct dp_agg_row){.name = "profile",
		                             .pid = s->pid,
		                             .keyed = true,
		                             .key = (uint64_t)s->pid,
		                             .cells = cell,
		                             .hits = s->taken};
	}
	if (!row || !cells)
		return dp_error_nomem();
	dp_aggs_sort(row, p->n, p->o->off_cpu ? DP_RANK_SUM : DP_RANK_HITS);
	return print_rows(p, seconds, row, p->n);
}

static struct dp_error *show_table(const struct profile *p, double seconds)
{
	if (!p->o->trace.asked.what)
		return NULL;
	return wants_stacks(p) ? show_stacks(p, seconds) : show_pids(p, seconds);
}

/* A reader that has gone had enough: the run has ended, as by Ctrl-C. */
static struct dp_error *unless_unread(struct profile *p, struct dp_error *err)
{
	if (!dp_outputs_unread(err))
		return err;
	stop(p);
	if (!p->end_ns)
		p->end_ns = dp_now_ns();
	p->ended_by = "closed output";
	p->unread = true;
	return dp_error_destroy(err);
}

static struct dp_error *end(struct profile *p)
{
	const double seconds = (double)(p->end_ns - p->start_ns) / 1e9;
	DP_TRY(unless_unread(p, dp_outputs_end(&p->out)));
	DP_TRY(show_table(p, seconds));
	for (size_t i = 0; i < p->n && p->o->format == DP_FORMAT_JSON; i++)
		dp_profile_report_json(p, &p->item[i].s, seconds);
	struct dp_error *err = p->unread             ? NULL
	                       : fflush(p->out.file) ? dp_error_sys(DP_TAG_OUTPUT, "writing the samples")
	                       : ferror(p->out.file) ? dp_error(DP_TAG_OUTPUT, "some samples could not be written")
	                                             : NULL;
	err = unless_unread(p, err);
	dp_outputs_rest(&p->out);
	dp_profile_report(p, seconds);
	return err;
}

static void fini(struct profile *p)
{
	dp_error_destroy(dp_outputs_end(&p->out));
	dp_outputs_fini(&p->out);
	for (size_t i = 0; i < p->n; i++)
		close_one(&p->item[i].s);
	free(p->item);
	free(p->wake);
	dp_sampled_command_fini(&p->command);
	dp_probe_fini(&p->probe);
	if (p->signal_fd >= 0)
		close(p->signal_fd);
}

/* The command's own status, as in a run with probes. A signal ends the wait, and the command goes on. */
static int status_of_command(const struct profile *p)
{
	struct signalfd_siginfo info;
	int status;
	pid_t ended;
	if (!p->gone_on)
		return 0;
	struct pollfd fd[2] = {{.fd = p->item[0].s.pid_fd, .events = POLLIN}, {.fd = p->signal_fd, .events = POLLIN}};
	while (!(ended = waitpid(p->item[0].s.pid, &status, WNOHANG))) {
		poll(fd, 2, WAIT_MS);
		if (read(p->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info) && info.ssi_pid)
			return 0;
	}
	if (ended != p->item[0].s.pid)
		return 0;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int dp_profile(const struct dp_options *options)
{
	struct profile p = {.o = options, .command = {.go = -1, .told = -1}, .signal_fd = -1};
	struct dp_error *err = begin(&p);
	if (!err)
		err = unless_unread(&p, loop(&p));
	if (!err)
		err = end(&p);
	int status = !err                      ? (p.failed ? DP_EXIT_PARTIAL : 0)
	             : err->tag != DP_TAG_EXEC ? DP_EXIT_FAILURE
	             : err->sys == ENOENT      ? DP_EXIT_NOT_FOUND
	                                       : DP_EXIT_CANNOT_RUN;
	dp_error_print(err, stderr);
	if (err)
		stop(&p);
	if (err && err->tag == DP_TAG_EXEC)
		dp_outputs_discard(&p.out);
	const int of_command = status_of_command(&p);
	if (!err && options->trace.command)
		status = of_command;
	dp_error_destroy(err);
	fini(&p);
	return status;
}
