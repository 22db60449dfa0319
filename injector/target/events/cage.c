/* SPDX-License-Identifier: MIT */
#include "injector/target/events/cage.h"

#include "injector/target/events/followers.h"
#include "injector/tracee/proc/filter.h"
#include "injector/tracee/proc/proc.h"

#include <stdlib.h>
#include <string.h>

#define WATCH_NS UINT64_C(100000000)
#define CHILDREN 16u /* looked at in that time */

struct dp_error *dp_cage_check(const struct dp_target *t, const char *what, const char *instead)
{
	const struct dp_process *p = &t->process;
	const char *why = dp_filter_forbids(p, DP_CALLS_HIT);
	if (p->filtered && !why && !p->filters)
		why = "its threads have different ones";
	if (!why)
		return NULL;
	return dp_error(DP_TAG_SECCOMP, "process %d (%s) is under a seccomp filter (%s), but %s; %s", p->pid, p->comm, why, what,
	                instead);
}

bool dp_thread_status_read(const struct dp_target *t, pid_t pid, pid_t tid, struct dp_thread_status *ret)
{
	struct dp_buf text;
	bool nested;
	dp_buf_init(&text);
	const bool runs = dp_proc_slurp(&text, "/proc/%d/task/%d/status", pid, tid) && !strstr(dp_buf_str(&text), "\nState:\tZ") &&
	                  !strstr(dp_buf_str(&text), "\nState:\tX");
	if (runs)
		*ret = (struct dp_thread_status){dp_status_ns_pid(dp_buf_str(&text), &nested),
		                                 dp_filter_is_new(&t->process, dp_buf_str(&text))};
	dp_buf_fini(&text);
	return runs;
}

static bool is_caged(const struct dp_target *t, pid_t pid, pid_t tid)
{
	struct dp_thread_status status;
	return dp_thread_status_read(t, pid, tid, &status) && status.filtered;
}

/* Checks the first thread, and each of the others in turn. */
static void look_at_threads(struct dp_target *t)
{
	struct dp_cage *c = &t->cage;
	struct dp_tids tids;
	if (c->all || !dp_proc_tids(t->process.pid, &tids))
		return;
	c->all = tids.n && is_caged(t, t->process.pid, tids.tid[0]);
	c->all |= tids.n && is_caged(t, t->process.pid, tids.tid[++c->next % tids.n]);
	free(tids.tid);
}

/* A few of the fork children at a time. */
static void look_at_children(struct dp_target *t)
{
	struct dp_cage *c = &t->cage;
	for (unsigned i = 0; i < CHILDREN && !c->child; i++) {
		const pid_t pid = dp_followers_at(t, c->next_child++);
		if (pid && is_caged(t, pid, pid))
			c->child = pid;
	}
}

void dp_cage_look(struct dp_target *t)
{
	const uint64_t now = dp_now_ns();
	if (now - t->cage.looked_ns < WATCH_NS)
		return;
	t->cage.looked_ns = now;
	look_at_threads(t);
	look_at_children(t);
}

bool dp_target_is_caged(const struct dp_target *t)
{
	return t->cage.all;
}

pid_t dp_target_caged_child(const struct dp_target *t)
{
	return t->cage.child;
}
