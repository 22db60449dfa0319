/* SPDX-License-Identifier: MIT */
/* Drains a target's rings, and frees the slots of threads that are gone. */
#include "injector/ring/drain.h"
#include "injector/target/events/followers.h"
#include "injector/target/events/outer.h"
#include "injector/target/target.h"
#include "injector/tracee/proc/proc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REAP_EVERY_NS UINT64_C(1000000000)
#define REAP_BORN_NS  UINT64_C(100000000) /* while fork children are born: each takes a ring */

/* The target's thread ids in its own pid namespace. */
struct living {
	const struct dp_target *t;
	struct dp_tids ns;
	bool unknown; /* listing failed: all count as alive */
};

static pid_t ns_tid_of(pid_t pid, pid_t tid)
{
	struct dp_buf status;
	bool nested;
	dp_buf_init(&status);
	const pid_t ns_tid =
	        dp_proc_slurp(&status, "/proc/%d/task/%d/status", pid, tid) ? dp_status_ns_pid(dp_buf_str(&status), &nested) : 0;
	dp_buf_fini(&status);
	return ns_tid;
}

/* In our own namespace a thread's directory answers; in another one each thread's id there must be read. */
static void list_living(struct living *l)
{
	const struct dp_process *p = &l->t->process;
	if (!p->nested)
		return;
	l->unknown = !dp_proc_tids(p->pid, &l->ns);
	for (size_t i = 0; !l->unknown && i < l->ns.n; i++)
		l->ns.tid[i] = ns_tid_of(p->pid, l->ns.tid[i]);
}

static bool thread_alive(pid_t ns_tid, void *data)
{
	const struct living *l = data;
	char path[64];
	for (size_t i = 0; i < l->ns.n; i++)
		if (l->ns.tid[i] == ns_tid)
			return true;
	if (l->ns.n || l->unknown)
		return l->unknown;
	snprintf(path, sizeof(path), "/proc/%d/task/%d", l->t->process.pid, ns_tid);
	return !access(path, F_OK);
}

static void reap(struct dp_target *t)
{
	struct living l = {.t = t};
	list_living(&l);
	dp_followers_inspect(t);
	dp_drain_reap(t->drain, thread_alive, &l);
	dp_aggs_reap(t);
	free(l.ns.tid);
}

static void reap_if_due(struct dp_target *t)
{
	const uint64_t now = dp_now_ns(), every = dp_followers_born(t) ? REAP_BORN_NS : REAP_EVERY_NS;
	if (now - t->reaped_ns <= every)
		return;
	t->reaped_ns = now;
	reap(t);
}

/* *any: there is something to drain now. */
static struct dp_error *begin(struct dp_target *t, bool last, bool *any)
{
	*any = false;
	if (!t->drain)
		return NULL;
	dp_full_look(t);
	if (t->overwrites && !last)
		return NULL;
	if (t->overwrites)
		DP_TRY(dp_flight_end(t));
	*any = true;
	return NULL;
}

struct dp_error *dp_target_drain(struct dp_target *t, bool last, dp_hit_fn each, void *data)
{
	bool any;
	DP_TRY(begin(t, last, &any));
	if (!any)
		return NULL;
	struct dp_outer outer = {.t = t, .each = each, .data = data};
	const bool differs = dp_outer_differs(t);
	DP_TRY(dp_drain_run(t->drain, last, differs ? dp_outer_hit : each, differs ? &outer : data));
	if (!last)
		reap_if_due(t);
	return NULL;
}

struct dp_error *dp_target_drain_lanes(struct dp_target *t, bool last, dp_hits_fn each, void *data)
{
	bool any;
	DP_TRY(begin(t, last, &any));
	if (!any)
		return NULL;
	struct dp_outer outer = {.t = t, .lane = each, .data = data};
	const bool differs = dp_outer_differs(t);
	dp_drain_lanes(t->drain, last, differs ? dp_outer_hits : each, differs ? &outer : data);
	if (!last)
		reap_if_due(t);
	return NULL;
}

void dp_target_drain_break(struct dp_target *t)
{
	if (t->drain)
		dp_drain_break(t->drain);
}

void dp_target_loss(struct dp_target *t, unsigned probe, struct dp_loss *ret)
{
	*ret = (struct dp_loss){0};
	if (t->drain)
		dp_drain_loss(t->drain, probe, ret);
	if (!probe)
		ret->abandoned += t->skipped;
}
