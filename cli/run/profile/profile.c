/* SPDX-License-Identifier: MIT */
#include "cli/run/profile/profile.h"

#include "cli/run/signals.h"
#include "session/code/code_view.h"
#include "injector/perf/samples.h"
#include "injector/tracee/tracee.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUND_MS 10
#define RETRIES  3
#define LOOK_NS  UINT64_C(20000000)
#define WAIT_MS  1000

struct profile {
	const struct dp_options *o;
	struct dp_trace_spec shown; /* the one event class, as the outputs take it */
	struct dp_probe probe;
	struct dp_typed typed;
	pid_t pid;
	int child_go, pid_fd, signal_fd; /* child_go: -1, or what a command that was started waits for */
	char comm[32];
	struct dp_samples *samples;
	struct dp_sample_walker *walker;
	struct dp_images images;
	uint32_t walked;          /* the image whose tables the walker has */
	struct dp_stacks *stacks; /* NULL: events */
	struct dp_outputs out;
	uint64_t start_ns, end_ns, tried_ns, taken, cut, crowded, stale, unnamed;
	const char *ended_by;
	bool look_failed;
	bool gone_on; /* the command runs on its own */
};

/* ---- samples ------------------------------------------------------------------------------------------------------- */

static bool has_all(const struct profile *p)
{
	return p->o->trace.hits && p->taken >= p->o->trace.hits;
}

/* What code is mapped, `since` then. */
static void add_image(struct profile *p, struct dp_mapped m)
{
	dp_images_add(&p->images, m, p->stacks);
	dp_sample_walker_tables(p->walker, NULL);
	p->walked = DP_IMAGES_NONE;
}

static struct dp_error *look(struct profile *p, uint64_t since)
{
	struct dp_mapped m = {.since_ns = since};
	dp_auto_free char *cache = dp_cache_dir();
	const uint64_t ns = dp_now_ns(); /* before the maps are read */
	DP_TRY(dp_samples_image(p->pid, cache, &m.image, &m.unwind));
	add_image(p, m);
	dp_samples_looked(p->samples, ns);
	return NULL;
}

static bool has_ended(const struct profile *p, int ms)
{
	struct pollfd fd = {.fd = p->pid_fd, .events = POLLIN};
	return poll(&fd, 1, ms) > 0;
}

/* A program that is gone before it was looked at: what was known of the one before it says nothing of its samples. */
static void forget_before(struct profile *p, uint64_t exec_ns)
{
	struct dp_mapped nothing = {.since_ns = exec_ns};
	struct dp_error *err = dp_image_create("", "", 0, &nothing.image);
	if (!err)
		add_image(p, nothing);
	dp_error_destroy(err);
	dp_samples_looked(p->samples, dp_now_ns());
}

/*
 * Code that was mapped is looked at before the samples behind that news; if it is of no file, which has no names, not again and
 * again for a program that maps all the time.
 */
static void keep_up(struct profile *p)
{
	struct dp_samples_news news;
	dp_samples_news(p->samples, &news);
	const bool names = news.file_ns || news.exec_ns;
	const uint64_t now = names || news.other_ns ? dp_now_ns() : 0;
	if (!now || (now - p->tried_ns < LOOK_NS && (!names || p->look_failed)))
		return;
	const uint64_t since = news.exec_ns ? news.exec_ns : news.file_ns ? news.file_ns : news.other_ns;
	struct dp_error *err = look(p, since);
	p->look_failed = err;
	p->tried_ns = dp_now_ns();
	if (err && news.exec_ns && has_ended(p, 0))
		forget_before(p, news.exec_ns);
	dp_error_destroy(err);
}

/* May what the sample is named by be older than its code? */
static bool is_stale(const struct profile *p, const struct dp_sample *sample)
{
	struct dp_samples_news news;
	dp_samples_news(p->samples, &news);
	return (news.file_ns && sample->ns >= news.file_ns) || (news.exec_ns && sample->ns >= news.exec_ns);
}

static size_t walk(struct profile *p, const struct dp_sample *sample, uint64_t pc[DP_BACKTRACE_MAX], uint32_t *number)
{
	const struct dp_mapped *m = dp_images_at(&p->images, sample->ns, number);
	if (p->walked != *number)
		dp_sample_walker_tables(p->walker, m->unwind);
	p->walked = *number;
	p->unnamed += !dp_image_nmaps(m->image);
	p->stale += is_stale(p, sample);
	return dp_sample_walk(p->walker, sample, pc, DP_BACKTRACE_MAX);
}

static void on_sample(const struct dp_sample *sample, void *data)
{
	struct profile *p = data;
	uint64_t pc[DP_BACKTRACE_MAX];
	uint8_t payload[1 + sizeof(pc)];
	uint32_t number;
	if (has_all(p))
		return;
	keep_up(p);
	size_t n = walk(p, sample, pc, &number);
	p->taken++;
	if (n == DP_BACKTRACE_MAX || dp_sample_left()) {
		p->cut++;
		pc[n < DP_BACKTRACE_MAX ? n++ : n - 1] = 0; /* says so: DP_FRAMES_CUT */
	}
	if (p->stacks) {
		p->crowded += !dp_stacks_count(p->stacks, &(struct dp_stack_seen){pc, n, number});
		return;
	}
	payload[0] = (uint8_t)n;
	memcpy(payload + 1, pc, n * sizeof(*pc));
	const struct dp_event event = {
	        .ns = sample->ns,
	        .pid = p->pid,
	        .tid = sample->tid,
	        .comm = p->comm,
	        .payload = payload,
	        .len = 1 + n * sizeof(*pc),
	        .image = dp_images_get(&p->images, number),
	};
	dp_outputs_event(&p->out, &event);
}

/* ---- a command that is started -------------------------------------------------------------------------------------- */

static void become(const struct profile *p, const int go[2], int told)
{
	char c;
	close(go[1]);                     /* or it would wait for itself when we end before it may go */
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* until it is a program of its own */
	if (read(go[0], &c, 1) != 1)
		_exit(DP_EXIT_FAILURE);
	prctl(PR_SET_PDEATHSIG, 0);
	execvp(p->o->trace.command[0], p->o->trace.command);
	const int why = errno;
	if (write(told, &why, sizeof(why)) < 0)
		_exit(DP_EXIT_FAILURE);
	_exit(why == ENOENT ? DP_EXIT_NOT_FOUND : DP_EXIT_CANNOT_RUN);
}

static struct dp_error *start_command(struct profile *p, int *told)
{
	int go[2], say[2];
	if (pipe2(go, O_CLOEXEC) || pipe2(say, O_CLOEXEC))
		return dp_error_sys(DP_TAG_SYS, "a pipe for the command");
	p->pid = fork();
	if (p->pid < 0)
		return dp_error_sys(DP_TAG_SYS, "starting the command");
	if (!p->pid)
		become(p, go, say[1]);
	close(go[0]);
	close(say[1]);
	p->child_go = go[1];
	*told = say[0];
	return NULL;
}

static struct dp_error *let_go(struct profile *p, int told)
{
	int why;
	if (write(p->child_go, "", 1) != 1)
		return dp_error_sys(DP_TAG_SYS, "starting the command");
	p->gone_on = read(told, &why, sizeof(why)) != sizeof(why);
	close(told);
	if (p->gone_on)
		return NULL;
	errno = why;
	return dp_error_sys(DP_TAG_EXEC, "'%s' cannot be started", p->o->trace.command[0]);
}

/* ---- the run ------------------------------------------------------------------------------------------------------- */

static struct dp_error *make_class(struct profile *p)
{
	p->probe.name = strdup("profile");
	p->probe.spec.text = strdup("--profile");
	if (!p->probe.name || !p->probe.spec.text)
		return dp_error(DP_TAG_NOMEM, "out of memory for the profile");
	p->shown.probe = &p->probe;
	p->shown.typed = &p->typed;
	p->shown.nprobes = 1;
	return dp_fields_add(&p->probe.fields, "backtrace:127");
}

static bool wants_table(const struct dp_options *o)
{
	return o->trace.asked.what;
}

static struct dp_error *open_outputs(struct profile *p)
{
	DP_TRY(make_class(p));
	if (wants_table(p->o))
		DP_TRY(dp_stacks_create(&p->stacks));
	return dp_outputs_open(p->o, &p->shown, p->comm, NULL, &p->out);
}

static void say_what(const struct profile *p)
{
	if (p->o->quiet && !p->out.record_dir)
		return;
	fprintf(stderr, "dynprobe: sampling %d (%s) %u times a second of CPU time%s%s; Ctrl-C ends\n", p->pid, p->comm,
	        p->o->profile_hz, p->out.record_dir ? ", recording into " : "", p->out.record_dir ? p->out.record_dir : "");
}

/* A command is called by its file's name, as it will call itself: it has not begun yet. */
static void name_process(struct profile *p)
{
	if (!p->o->trace.command) {
		dp_samples_comm(p->pid, p->comm, sizeof(p->comm));
		return;
	}
	const char *slash = strrchr(p->o->trace.command[0], '/');
	snprintf(p->comm, sizeof(p->comm), "%.15s", slash ? slash + 1 : p->o->trace.command[0]);
}

static struct dp_error *look_first(struct profile *p)
{
	for (int tried = 1;; tried++) { /* a program that maps while we look */
		struct dp_error *err = look(p, 0);
		if (err && p->o->trace.command && has_ended(p, 200)) /* a short one: its samples have no names */
			err = dp_error_destroy(err);
		if (!err || tried == RETRIES)
			return err;
		dp_error_destroy(err);
	}
}

static struct dp_error *begin(struct profile *p)
{
	int told = -1;
	if (p->o->trace.command)
		DP_TRY(start_command(p, &told)); /* before our signals are blocked */
	else
		p->pid = dp_samples_leader(p->o->trace.pid[0]);
	DP_TRY(dp_signals_open(&p->signal_fd));
	p->pid_fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	if (p->pid_fd < 0)
		return dp_error_sys(DP_TAG_NO_PROCESS, "process %d", p->pid);
	DP_TRY(dp_sample_walker_create(&p->walker));
	DP_TRY(dp_samples_open(p->pid, p->o->profile_hz, p->o->trace.command, &p->samples));
	DP_TRY(dp_images_init(&p->images));
	name_process(p);
	if (!p->o->trace.command)
		DP_TRY(look_first(p));
	DP_TRY(open_outputs(p)); /* a command does nothing before it is certain that its samples can be kept */
	if (p->o->trace.command)
		DP_TRY(let_go(p, told));
	say_what(p);
	return p->o->trace.command ? look_first(p) : NULL;
}

static void wait_round(struct profile *p)
{
	struct pollfd fd[2] = {{.fd = p->signal_fd, .events = POLLIN}, {.fd = p->pid_fd, .events = POLLIN}};
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
		DP_TRY(dp_samples_start(p->samples));
	while (!p->ended_by) {
		wait_round(p);
		dp_samples_drain(p->samples, on_sample, p);
		if (has_all(p))
			p->ended_by = "hits";
		DP_TRY(dp_outputs_flush(&p->out, 0));
	}
	dp_samples_stop(p->samples);
	p->end_ns = dp_now_ns();
	dp_samples_drain(p->samples, on_sample, p);
	struct dp_samples_stats stats;
	dp_samples_stats(p->samples, &stats);
	return dp_outputs_flush(&p->out, stats.lost);
}

/* ---- the end ------------------------------------------------------------------------------------------------------- */

static uint64_t unnamed(const struct profile *p)
{
	return p->unnamed + (p->stacks ? dp_stacks_unnamed(p->stacks) : 0);
}

static void report_json(const struct profile *p, const struct dp_samples_stats *s, double seconds)
{
	fprintf(p->out.file,
	        "{\"type\":\"profile\",\"version\":1,\"pid\":%d,\"hz\":%u,\"seconds\":%.3f,\"samples\":%llu,\"lost\":%llu,"
	        "\"throttled\":%llu,\"foreign\":%llu,\"cut\":%llu,\"crowded\":%llu,\"stale\":%llu,\"unnamed\":%llu,"
	        "\"children\":%llu,\"user_only\":%s,\"ended_by\":\"%s\"}\n",
	        p->pid, p->o->profile_hz, seconds, (unsigned long long)p->taken, (unsigned long long)s->lost,
	        (unsigned long long)s->throttled, (unsigned long long)s->foreign, (unsigned long long)p->cut,
	        (unsigned long long)p->crowded, (unsigned long long)p->stale, (unsigned long long)unnamed(p),
	        (unsigned long long)s->children, s->user_only ? "true" : "false", p->ended_by);
}

static void put_count(uint64_t n, const char *what)
{
	if (n)
		fprintf(stderr, ", %llu %s", (unsigned long long)n, what);
}

static void report_text(const struct profile *p, const struct dp_samples_stats *s, double seconds)
{
	fprintf(stderr, "dynprobe: %llu samples in %.3f s", (unsigned long long)p->taken, seconds);
	put_count(s->lost, "lost (the rings were full)");
	put_count(s->throttled, "times throttled by the kernel");
	put_count(s->foreign, "without a 64-bit context");
	put_count(p->cut, "cut (more than 32 KiB of stack, a page of it that was not in memory, or more than 126 frames)");
	put_count(p->crowded, "not counted (too many different stacks)");
	put_count(p->stale, "of code that was not looked at any more (names may be of what was there before)");
	put_count(unnamed(p), "without names (their code was gone)");
	put_count(s->children, "child processes not sampled");
	fprintf(stderr, "; %s%s\n", p->ended_by,
	        s->user_only ? "; time in the kernel is not seen (kernel.perf_event_paranoid)" : "");
}

static struct dp_error *end(struct profile *p)
{
	const double seconds = (double)(p->end_ns - p->start_ns) / 1e9;
	struct dp_samples_stats stats;
	dp_samples_stats(p->samples, &stats);
	DP_TRY(dp_outputs_end(&p->out));
	if (p->stacks)
		DP_TRY(dp_stacks_show(p->stacks, &(struct dp_stacks_view){p->o, &p->images, p->pid, seconds}, p->out.file));
	if (p->o->format == DP_FORMAT_JSON)
		report_json(p, &stats, seconds);
	struct dp_error *err = fflush(p->out.file)   ? dp_error_sys(DP_TAG_OUTPUT, "writing the samples")
	                       : ferror(p->out.file) ? dp_error(DP_TAG_OUTPUT, "not all of the samples could be written")
	                                             : NULL;
	report_text(p, &stats, seconds);
	return err;
}

static void fini(struct profile *p)
{
	dp_error_destroy(dp_outputs_end(&p->out));
	dp_outputs_fini(&p->out);
	dp_stacks_destroy(p->stacks);
	dp_samples_destroy(p->samples);
	dp_sample_walker_destroy(p->walker);
	dp_images_fini(&p->images);
	dp_probe_fini(&p->probe);
	for (int *fd = &p->child_go; fd <= &p->signal_fd; fd++)
		if (*fd >= 0)
			close(*fd);
}

/* The command's own status, as a run with probes has it. A signal ends the waiting, and the command goes on. */
static int status_of_command(const struct profile *p)
{
	struct pollfd fd[2] = {{.fd = p->pid_fd, .events = POLLIN}, {.fd = p->signal_fd, .events = POLLIN}};
	struct signalfd_siginfo info;
	int status;
	pid_t ended;
	if (!p->gone_on)
		return 0;
	while (!(ended = waitpid(p->pid, &status, WNOHANG))) {
		poll(fd, 2, WAIT_MS);
		if (read(p->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info) && info.ssi_pid)
			return 0;
	}
	if (ended != p->pid)
		return 0;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int dp_profile(const struct dp_options *options)
{
	struct profile p = {.o = options, .child_go = -1, .pid_fd = -1, .signal_fd = -1};
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
	if (err && p.samples)
		dp_samples_stop(p.samples);
	if (err && err->tag == DP_TAG_EXEC)
		dp_outputs_discard(&p.out);
	const int of_command = status_of_command(&p);
	if (!err)
		status = of_command;
	dp_error_destroy(err);
	fini(&p);
	return status;
}
