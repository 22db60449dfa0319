/* SPDX-License-Identifier: MIT */
/*
 * Makes a descriptor in the target without disturbing the program.
 *
 * The kernel gives a new descriptor the lowest free number, and programs rely on that: after close(0), open() must return 0. So
 * the borrowed thread makes the descriptor, duplicates it to a high free number and closes the low one, all in one script. A
 * program with one thread does not run meanwhile; one with several finds the low number taken for about two microseconds.
 *
 * A script has no variables: the kernel's results are predicted from the open descriptors, also for the calls behind it that use
 * the descriptor. If a result differs, the script ends, and the rest is done call by call. The high number lies within the table
 * that the kernel has allocated, because growing the table would make the thread wait for an RCU grace period.
 */
#include "injector/target/target.h"

#include "injector/tracee/proc/proc.h"

#include "base/cleanup.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>

#define TABLE_MOST 65536

struct plan {
	int64_t low, high; /* high < 0: no second number is free */
};

static bool *open_numbers(pid_t pid, pid_t tid, size_t n)
{
	char dir[64];
	bool *open = calloc(n + 1, sizeof(*open));
	snprintf(dir, sizeof(dir), "/proc/%d/task/%d/fd", pid, tid);
	dp_auto_closedir DIR *d = opendir(dir);
	for (struct dirent *e; open && d && (e = readdir(d));) {
		const unsigned long long fd = strtoull(e->d_name, NULL, 10);
		if (e->d_name[0] != '.' && fd < n)
			open[fd] = true;
	}
	return open;
}

static size_t table_size(pid_t pid, pid_t tid)
{
	struct dp_buf status;
	dp_buf_init(&status);
	const long n = dp_proc_slurp(&status, "/proc/%d/task/%d/status", pid, tid)
	                       ? dp_status_long(dp_buf_str(&status), "FDSize", 0)
	                       : 0;
	dp_buf_fini(&status);
	return n > 0 && n <= TABLE_MOST ? (size_t)n : 0;
}

static struct plan predict(pid_t pid, pid_t tid)
{
	struct plan p = {-1, -1};
	const size_t n = table_size(pid, tid);
	dp_auto_free bool *open = open_numbers(pid, tid, n);
	for (size_t i = 0; open && i < n; i++) {
		if (!open[i] && p.low < 0)
			p.low = (int64_t)i;
		if (!open[i])
			p.high = (int64_t)i;
	}
	if (p.high == p.low)
		p.high = -1;
	return p;
}

static struct dp_step duplicate(int64_t fd, int64_t high)
{
	return (struct dp_step){.nr = SYS_fcntl, .args = {(uint64_t)fd, F_DUPFD_CLOEXEC, (uint64_t)high}, .want = high};
}

static struct dp_step close_it(int64_t fd)
{
	return (struct dp_step){.nr = SYS_close, .args = {(uint64_t)fd}};
}

static struct dp_error *failed(const char *name, int64_t got)
{
	return dp_remote_refused((int)-got, "%s in the target", name);
}

/* Makes a call that the script did not come to. */
static struct dp_error *make_up(struct dp_borrow *b, struct dp_step *step)
{
	if (!step->made)
		DP_TRY(dp_remote_syscall(b, step->nr, step->args, &step->got));
	step->made = true;
	return NULL;
}

/* A result was not as predicted: does the remaining steps. */
static struct dp_error *finish(struct dp_borrow *b, struct dp_step step[3], int64_t high, int64_t *fd)
{
	const int64_t low = step[0].got;
	*fd = low;
	if (high < 0)
		return NULL;
	if (!step[1].made)
		step[1] = duplicate(low, high);
	DP_TRY(make_up(b, &step[1]));
	if (step[1].got < 0) /* the limit on descriptors is lower than the table size */
		return NULL;
	*fd = step[1].got;
	if (!step[2].made)
		step[2] = close_it(low);
	return make_up(b, &step[2]);
}

static struct dp_step with_fd(struct dp_step step, int64_t fd)
{
	for (size_t i = 0; i < sizeof(step.args) / sizeof(*step.args); i++)
		if (step.args[i] == DP_OPENED)
			step.args[i] = (uint64_t)fd;
	return step;
}

#define BEHIND_MOST 8
struct script {
	struct plan plan;
	struct dp_step all[4 + BEHIND_MOST];
	size_t n, make, behind; /* all; indices of the call that opens, and of those behind it */
};

static void write_script(struct script *s, const struct dp_opening *o)
{
	const int64_t fd = s->plan.high >= 0 ? s->plan.high : s->plan.low;
	if (o->before.nr)
		s->all[s->n++] = o->before;
	s->make = s->n;
	s->all[s->n] = o->make;
	s->all[s->n++].want = s->plan.low;
	if (s->plan.high >= 0) {
		s->all[s->n++] = duplicate(s->plan.low, s->plan.high);
		s->all[s->n++] = close_it(s->plan.low);
	}
	s->behind = s->n;
	for (size_t i = 0; i < o->nbehind && i < BEHIND_MOST; i++)
		s->all[s->n++] = with_fd(o->behind[i], fd);
}

/* The calls behind it that were made; or if another result ended the script before them, makes them now. */
static struct dp_error *take_behind(struct dp_borrow *b, uint64_t room, const struct script *s, struct dp_opening *o, int64_t fd)
{
	size_t done;
	for (size_t i = 0; i < o->nbehind; i++)
		o->behind[i] = s->all[s->behind + i].made ? s->all[s->behind + i] : with_fd(o->behind[i], fd);
	return o->nbehind && !o->behind[0].made ? dp_remote_script(b, room, o->behind, o->nbehind, UINT64_MAX, &done) : NULL;
}

struct dp_error *dp_remote_open(struct dp_borrow *b, uint64_t room, struct dp_opening *o, int64_t *fd)
{
	struct script s = {.plan = predict(dp_borrow_tid(b), dp_borrow_tid(b))};
	const struct dp_step *make;
	size_t done;
	write_script(&s, o);
	make = &s.all[s.make];
	*fd = -1;
	DP_TRY(dp_remote_script(b, room, s.all, s.n, UINT64_MAX, &done));
	if (s.make && s.all[0].made && s.all[0].got != s.all[0].want)
		return failed(o->name_before, s.all[0].got);
	if (!make->made)
		return dp_remote_unfinished("%s in the target was interrupted", o->name);
	if (make->got < 0)
		return failed(o->name, make->got);
	DP_TRY(finish(b, &s.all[s.make], s.plan.high, fd));
	return take_behind(b, room, &s, o, *fd);
}
