/* SPDX-License-Identifier: MIT */
#include "injector/target/events/outer.h"
#include "injector/target/events/followers.h"
#include "injector/tracee/proc/proc.h"

#include <stdlib.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define AGAIN_NS UINT64_C(10000000)   /* before a thread that was not found is looked for again */
#define SURE_NS  UINT64_C(1000000000) /* before an id may have been given to another thread */

struct dp_outer_ids {
	uint64_t key; /* inner pid (0: the target) and tid */
	pid_t pid, tid;
	bool found;
	uint64_t asked_ns;
	UT_hash_handle hh;
};

bool dp_outer_differs(const struct dp_target *t)
{
	return t->process.nested || t->followers;
}

static uint64_t key_of(pid_t pid, pid_t tid)
{
	return (uint64_t)(uint32_t)pid << 32 | (uint32_t)tid;
}

static struct dp_outer_ids *entry(struct dp_target *t, uint64_t key)
{
	struct dp_outer_ids *e = NULL;
	HASH_FIND(hh, t->outer, &key, sizeof(key), e);
	return e;
}

static struct dp_outer_ids *note(struct dp_target *t, uint64_t key, pid_t pid, pid_t tid)
{
	struct dp_outer_ids *e = entry(t, key);
	if (!e && (e = calloc(1, sizeof(*e)))) {
		e->key = key;
		HASH_ADD(hh, t->outer, key, sizeof(e->key), e);
		if (!entry(t, key)) { /* no memory for the table */
			free(e);
			return NULL;
		}
	}
	if (e) {
		e->found = tid != 0;
		e->pid = pid;
		e->tid = tid;
		e->asked_ns = dp_now_ns();
	}
	return e;
}

static pid_t inner_tid(pid_t pid, pid_t tid)
{
	struct dp_buf status;
	bool nested;
	dp_buf_init(&status);
	const pid_t inner =
	        dp_proc_slurp(&status, "/proc/%d/task/%d/status", pid, tid) ? dp_status_ns_pid(dp_buf_str(&status), &nested) : 0;
	dp_buf_fini(&status);
	return inner;
}

/* Notes the threads that it passes, newest first: a thread that is asked for is a new one, or all are. */
static struct dp_outer_ids *search(struct dp_target *t, pid_t inner_pid, pid_t wanted, pid_t outer_pid)
{
	struct dp_outer_ids *found = NULL;
	struct dp_tids tids = {0};
	if (!outer_pid || !dp_proc_tids(outer_pid, &tids))
		return NULL;
	for (size_t i = tids.n; i-- > 0 && !found;) {
		const pid_t inner = inner_tid(outer_pid, tids.tid[i]);
		struct dp_outer_ids *e = inner ? note(t, key_of(inner_pid, inner), outer_pid, tids.tid[i]) : NULL;
		found = inner == wanted ? e : NULL;
	}
	free(tids.tid);
	return found;
}

static const struct dp_outer_ids *ids_of(struct dp_target *t, pid_t pid, pid_t tid)
{
	const uint64_t key = key_of(pid, tid), now = dp_now_ns();
	struct dp_outer_ids *e = entry(t, key);
	if (e && now - e->asked_ns < (e->found ? SURE_NS : AGAIN_NS))
		return e;
	if (e && e->found && inner_tid(e->pid, e->tid) == tid) {
		e->asked_ns = now;
		return e;
	}
	const pid_t outer = pid ? dp_followers_outer(t, pid) : t->process.pid;
	struct dp_outer_ids *fresh = search(t, pid, tid, outer);
	if (fresh || (e && e->found)) /* it has ended, and its last hits are being read */
		return fresh ? fresh : e;
	return note(t, key, outer, 0);
}

/* The ids from the ring, as their outer ones. */
static void translate(struct dp_target *t, pid_t *pid, pid_t *tid)
{
	const struct dp_outer_ids *ids = t->process.nested || *pid ? ids_of(t, *pid, *tid) : NULL;
	if (ids && ids->pid && *pid)
		*pid = ids->pid;
	if (ids && ids->found)
		*tid = ids->tid;
}

static pid_t inner_of(const struct dp_target *t, pid_t pid)
{
	return pid ? pid : t->process.ns_pid;
}

void dp_outer_hit(const struct dp_hit *hit, void *data)
{
	const struct dp_outer *o = data;
	struct dp_hit h = *hit;
	translate(o->t, &h.pid, &h.tid);
	h.inner_pid = inner_of(o->t, hit->pid);
	h.inner_tid = hit->tid;
	o->each(&h, o->data);
}

void dp_outer_hits(const struct dp_hits *hits, void *data)
{
	const struct dp_outer *o = data;
	struct dp_hits h = *hits;
	translate(o->t, &h.pid, &h.tid);
	h.inner_pid = inner_of(o->t, hits->pid);
	h.inner_tid = hits->tid;
	o->lane(&h, o->data);
}

/* A child's namespace may be its own, below the target's: then any number may be its pid. */
pid_t dp_target_outer_pid(struct dp_target *t, pid_t inner)
{
	if (inner == t->process.ns_pid)
		return t->process.pid;
	const struct dp_outer_ids *ids = t->followers ? ids_of(t, inner, inner) : NULL;
	return ids && ids->pid ? ids->pid : t->process.nested ? 0 : inner;
}

void dp_outer_fini(struct dp_target *t)
{
	struct dp_outer_ids *e, *next;
	HASH_ITER(hh, t->outer, e, next)
	{
		HASH_DEL(t->outer, e);
		free(e);
	}
}
