/* SPDX-License-Identifier: MIT */
#include "cli/run/status.h"
#include "session/run/past.h"
#include "session/run/snapshots.h"
#include "session/run/starts.h"
#include "session/run/summary.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define GRACE_MS 300 /* most commands end by themselves at the end of a run */

static bool is_refused(const struct dp_trace *t, size_t k, size_t i)
{
	const struct dp_place *p = &t->run.session[k]->place[i];
	return p->refused && !p->left_out && (!p->absent || dp_run_is_nowhere(&t->run, k, i));
}

int dp_status_of(const struct dp_trace *t, const struct dp_error *err)
{
	if (err && err->tag == DP_TAG_EXEC)
		return err->sys == ENOENT ? DP_EXIT_NOT_FOUND : DP_EXIT_CANNOT_RUN;
	if (err && err->tag == DP_TAG_INTERRUPTED && t->signal)
		return 128 + t->signal;
	if (err)
		return DP_EXIT_FAILURE;
	for (size_t k = 0; k < t->run.nsessions; k++)
		for (size_t i = 0; i < t->run.trace->nprobes; i++)
			if (is_refused(t, k, i))
				return DP_EXIT_PARTIAL;
	struct dp_summary_programs programs;
	if (t->cut)
		return DP_EXIT_PARTIAL;
	if (dp_past_refused(&t->run) || (dp_starts_counts(&t->run, &programs) && programs.unprobed))
		return DP_EXIT_PARTIAL;
	if (t->run.unheard || t->run.nmissing || dp_past_children(&t->run)->nleft)
		return DP_EXIT_PARTIAL;
	for (size_t k = 0; k < t->run.nsessions; k++)
		if (t->run.session[k]->children.nleft)
			return DP_EXIT_PARTIAL;
	struct dp_summary_snapshots shots;
	return dp_snapshots_counts(&t->run, &shots) && shots.failed ? DP_EXIT_PARTIAL : 0;
}

/* As a shell sees it: killed by the same signal, without leaving a core of ours. */
static int die_like(int sig)
{
	const struct rlimit none = {0};
	sigset_t set;
	setrlimit(RLIMIT_CORE, &none);
	signal(sig, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(sig);
	return 128 + sig;
}

/* The run has ended, but its command may go on for hours: says what dynprobe is waiting for. */
static void note_wait(const struct dp_trace *t, const struct dp_target *target)
{
	struct pollfd end = {.fd = dp_target_exit_fd(target), .events = POLLIN};
	if (!t->options->quiet && poll(&end, 1, GRACE_MS) == 0)
		fprintf(stderr, "dynprobe: %s (%d) runs on without probes; dynprobe waits until it exits\n",
		        dp_target_comm(target), dp_target_pid(target));
}

int dp_status_wait(struct dp_trace *t, int own)
{
	struct dp_target *target = t->run.session[0]->target;
	struct pollfd p[2] = {{.fd = dp_target_exit_fd(target), .events = POLLIN}, {.fd = t->signal_fd, .events = POLLIN}};
	struct signalfd_siginfo info;
	int status = 0;
	note_wait(t, target);
	while (!dp_target_exit_status(target, &status)) {
		poll(p, 2, p[0].fd >= 0 ? 1000 : 10);
		/* The probes are removed; another signal ends the wait, and the command goes on. */
		if (read(t->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info) && info.ssi_pid)
			return own;
	}
	if (WIFSIGNALED(status))
		return die_like(WTERMSIG(status));
	return WEXITSTATUS(status) ? WEXITSTATUS(status) : own;
}
