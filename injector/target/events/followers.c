/* SPDX-License-Identifier: MIT */
/*
 * Which fork children of a target record, and which of them have ended (decision 0037). open/children.c cleans them in the end.
 *
 * They are known by the control page and the private region (holders.c): the latter is empty, or has the number by which its slots
 * are known. Process ids in rings are for display only: they are of the child's own namespace, and the child wrote them.
 * A slot is given away only when no process has its number, so a process that cannot be read must not be overlooked.
 */
#include "injector/target/events/followers.h"

#include "injector/ring/drain.h"
#include "injector/target/events/holders.h"
#include "injector/tracee/proc/filter.h"
#include "injector/tracee/proc/proc.h"

#include <stdlib.h>

#define INSPECT_NS UINT64_C(50000000)
#define SEEK_NS    UINT64_C(10000000)

struct follower {
	pid_t pid;
	uint32_t process; /* 0: it has not joined, or joins now */
	bool unreadable;
	pid_t inner;  /* in its own pid namespace; 0: not asked yet */
	bool nested; /* which is another than ours */
};

struct dp_followers {
	struct dp_group_at at;
	struct follower *item;
	size_t n, cap;
	uint32_t joined;   /* numbers above it were taken after the inspection began */
	bool incomplete;   /* it failed: everybody counts as living */
	uint64_t looked_ns, sought_ns;
	bool any;          /* at the last dp_target_followed() */
};

static struct dp_follow *page_of(const struct dp_target *t)
{
	return &((struct dp_control *)(void *)t->data)->follow;
}

struct dp_error *dp_target_follow_check(const struct dp_target *t)
{
	const struct dp_process *p = &t->process;
	if (dp_filter_forbids(p, DP_CALLS_HIT))
		return dp_error(DP_TAG_FOLLOW,
		                "process %d (%s) has a seccomp filter, which may not allow the system calls of its children's first "
		                "hits: %s",
		                p->pid, p->comm, dp_filter_forbids(p, DP_CALLS_HIT));
	return NULL;
}

/* ---- inspection ------------------------------------------------------------------------------------------------------ */

static bool add(struct dp_followers *f, struct follower one)
{
	if (f->n == f->cap) {
		const size_t cap = f->cap ? 2 * f->cap : 32;
		struct follower *grown = realloc(f->item, cap * sizeof(*grown));
		if (!grown)
			return false;
		f->item = grown;
		f->cap = cap;
	}
	f->item[f->n++] = one;
	return true;
}

static bool add_holder(const struct dp_holder *h, void *data)
{
	if (h->live && h->live != DP_JOINED)
		return true; /* the target itself, through a vfork child */
	return add(data, (struct follower){.pid = h->pid, .process = h->live ? h->process : 0, .unreadable = h->unreadable});
}

static void inspect(struct dp_target *t)
{
	struct dp_followers *f = t->followers;
	f->n = 0;
	f->joined = __atomic_load_n(&page_of(t)->joined, __ATOMIC_SEQ_CST);
	f->incomplete = !dp_holders_find(&f->at, t->process.pid, add_holder, f);
}

void dp_followers_inspect(struct dp_target *t)
{
	if (t->followers)
		inspect(t);
}

bool dp_followers_born(const struct dp_target *t)
{
	return t->followers && __atomic_load_n(&page_of(t)->joined, __ATOMIC_RELAXED) != t->followers->joined;
}

/* ---- the drain's questions ------------------------------------------------------------------------------------------------ */

static pid_t innermost_pid(pid_t pid, pid_t tid, bool *nested)
{
	struct dp_buf status;
	dp_buf_init(&status);
	const pid_t ret =
	        dp_proc_slurp(&status, "/proc/%d/task/%d/status", pid, tid) ? dp_status_ns_pid(dp_buf_str(&status), nested) : 0;
	dp_buf_fini(&status);
	return ret;
}

static pid_t inner_of(struct follower *one)
{
	if (!one->inner)
		one->inner = innermost_pid(one->pid, one->pid, &one->nested);
	return one->inner;
}

static bool runs(pid_t pid, pid_t tid)
{
	struct dp_task_stat stat;
	return dp_proc_stat(pid, tid, &stat) && stat.state != 'Z' && stat.state != 'X';
}

/* In another pid namespace each thread's id there must be read. */
static bool has_inner(const struct follower *one, pid_t tid)
{
	struct dp_tids tids;
	bool found = false, ignored;
	if (!dp_proc_tids(one->pid, &tids))
		return true;
	for (size_t i = 0; i < tids.n && !found; i++)
		found = innermost_pid(one->pid, tids.tid[i], &ignored) == tid && runs(one->pid, tids.tid[i]);
	free(tids.tid);
	return found;
}

static bool has_thread(struct follower *one, const struct dp_slot_owner *owner)
{
	if (inner_of(one) != owner->pid) /* it has just ended, or forked on */
		return true;
	return one->nested ? has_inner(one, owner->tid) : runs(one->pid, owner->tid);
}

static pid_t find_outer(struct dp_followers *f, pid_t inner)
{
	for (size_t i = 0; i < f->n; i++)
		if (!f->item[i].unreadable && inner_of(&f->item[i]) == inner)
			return f->item[i].pid;
	return 0;
}

pid_t dp_followers_outer(struct dp_target *t, pid_t inner)
{
	struct dp_followers *f = t->followers;
	const uint64_t now = dp_now_ns();
	pid_t found = f ? find_outer(f, inner) : 0;
	if (found || !f || now - f->sought_ns < (t->process.nested ? SEEK_NS : INSPECT_NS))
		return found;
	f->sought_ns = now;
	inspect(t);
	return find_outer(f, inner);
}

static pid_t find_number(const struct dp_followers *f, uint32_t process)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->item[i].process == process)
			return f->item[i].pid;
	return 0;
}

static bool has_unreadable(const struct dp_followers *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->item[i].unreadable)
			return true;
	return false;
}

pid_t dp_followers_pid(struct dp_target *t, uint32_t process)
{
	struct dp_followers *f = t->followers;
	const uint64_t now = dp_now_ns();
	pid_t found = f ? find_number(f, process) : DP_FOLLOWER_ENDED;
	if (found || now - f->sought_ns < SEEK_NS)
		return found;
	f->sought_ns = now;
	inspect(t);
	found = find_number(f, process);
	if (found || f->incomplete)
		return found;
	return has_unreadable(f) ? DP_FOLLOWER_HIDDEN : DP_FOLLOWER_ENDED; /* or a number that nobody took: the program's own */
}

pid_t dp_followers_at(const struct dp_target *t, size_t i)
{
	const struct dp_followers *f = t->followers;
	return f && f->n && !f->item[i % f->n].unreadable ? f->item[i % f->n].pid : 0;
}

enum dp_owner_state dp_followers_state(const struct dp_target *t, const struct dp_slot_owner *owner)
{
	struct dp_followers *f = t->followers;
	if (!owner->process)
		return t->gone ? DP_OWNER_PROCESS_ENDED : owner->tid ? DP_OWNER_ENDED : DP_OWNER_LIVES;
	if (f->incomplete || owner->process > f->joined)
		return DP_OWNER_LIVES;
	for (size_t i = 0; i < f->n; i++) {
		if (f->item[i].process == owner->process)
			return has_thread(&f->item[i], owner) ? DP_OWNER_LIVES : DP_OWNER_ENDED;
	}
	for (size_t i = 0; i < f->n; i++)
		if (!f->item[i].process && (!owner->pid || inner_of(&f->item[i]) == owner->pid))
			return DP_OWNER_LIVES;
	return DP_OWNER_PROCESS_ENDED;
}

/* `data` is as for the target's own threads; its first member is the target. */
static enum dp_owner_state owner_state(const struct dp_slot_owner *owner, void *data)
{
	return dp_followers_state(*(const struct dp_target *const *)data, owner);
}

/* ---- life ------------------------------------------------------------------------------------------------------------------ */

struct dp_error *dp_followers_begin(struct dp_target *t)
{
	struct dp_follow *page = page_of(t);
	if (!t->options.follow)
		return NULL;
	t->followers = calloc(1, sizeof(*t->followers));
	if (!t->followers)
		return dp_error_nomem();
	t->followers->at = (struct dp_group_at){.data = t->in.region[DP_REGION_DATA].addr, .private = t->in.private.addr};
	page->identity = t->runtime.identity;
	page->tid_offset = t->runtime.tid_offset;
	page->unwind = t->in.region[DP_REGION_TABLES].size ? t->in.region[DP_REGION_TABLES].addr : 0;
	dp_drain_follow(t->drain, owner_state);
	__atomic_store_n(&page->on, 1, __ATOMIC_RELEASE);
	return NULL;
}

struct dp_followers *dp_followers_destroy(struct dp_followers *f)
{
	if (f)
		free(f->item);
	free(f);
	return NULL;
}

static bool has_readable(const struct dp_followers *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (!f->item[i].unreadable)
			return true;
	return false;
}

bool dp_target_followed(struct dp_target *t)
{
	struct dp_followers *f = t->followers;
	const uint64_t now = dp_now_ns();
	if (!f || now - f->looked_ns < INSPECT_NS)
		return f && f->any;
	inspect(t);
	f->looked_ns = now;
	f->any = has_readable(f);
	return f->any;
}

unsigned dp_target_unfollow(struct dp_target *t)
{
	if (!t->followers || !t->data)
		return 0;
	__atomic_store_n(&page_of(t)->on, 0, __ATOMIC_SEQ_CST);
	return __atomic_load_n(&page_of(t)->processes, __ATOMIC_RELAXED);
}
