/* SPDX-License-Identifier: MIT */
/*
 * Finds the fork children of a target, and cleans them in the end (decision 0037).
 *
 * They are known by the control page and the private region, which each has at the target's random addresses: the latter is empty,
 * or has the number by which its slots are known. Process ids in rings are for display only: they are of the child's own
 * namespace, and the child wrote them.
 * A slot is given away only when no process has its number, so a process that cannot be read must not be overlooked.
 */
#include "injector/target/events/followers.h"

#include "injector/ring/drain.h"
#include "injector/tracee/proc/proc.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define INSPECT_NS UINT64_C(50000000)
#define CLEAN_NS   UINT64_C(10000000000)
#define ROUND_NS   5000000L

struct follower {
	pid_t pid;
	uint32_t process; /* 0: it has not joined, or joins now */
	bool unreadable;
	pid_t inner; /* in its own pid namespace; 0: not asked yet */
};

struct dp_followers {
	uint64_t data, private; /* addresses in each of them */
	struct follower *item;
	size_t n, cap;
	uint32_t joined;   /* numbers above it were taken after the inspection began */
	bool incomplete;   /* it failed: everybody counts as living */
	uint64_t looked_ns;
	bool any;          /* at the last dp_target_followed() */
};

static struct dp_follow *page_of(const struct dp_target *t)
{
	return &((struct dp_control *)(void *)t->data)->follow;
}

struct dp_error *dp_target_follow_check(const struct dp_target *t)
{
	const struct dp_process *p = &t->process;
	if (p->ns_pid && p->ns_pid != p->pid)
		return dp_error(DP_TAG_FOLLOW,
		                "process %d (%s) is in another pid namespace: dynprobe cannot follow its children there; run "
		                "dynprobe inside of it",
		                p->pid, p->comm);
	if (p->seccomp)
		return dp_error(DP_TAG_FOLLOW,
		                "process %d (%s) has a seccomp filter, which may not allow the system calls of its children's first "
		                "hits",
		                p->pid, p->comm);
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

struct page {
	uint64_t magic, private;  /* of struct dp_control */
	uint64_t live, process;   /* of struct dp_agent */
};

/* 0, or errno. */
static int read_page(const struct dp_followers *f, pid_t tid, struct page *ret)
{
	const uint64_t at[] = {f->data + offsetof(struct dp_control, magic), f->data + offsetof(struct dp_control, private_addr),
	                       f->private + offsetof(struct dp_agent, live), f->private + offsetof(struct dp_agent, process)};
	struct iovec here = {ret, sizeof(*ret)}, there[4];
	for (int i = 0; i < 4; i++)
		there[i] = (struct iovec){(void *)(uintptr_t)at[i], sizeof(uint64_t)};
	const ssize_t got = process_vm_readv(tid, &here, 1, there, 4, 0);
	if (got < 0)
		return errno;
	return got == (ssize_t)sizeof(*ret) && ret->magic == DP_MAGIC && ret->private == f->private ? 0 : EFAULT;
}

/* A first thread that has ended has no memory any more; the others have. */
static int read_any(const struct dp_followers *f, pid_t pid, struct page *ret)
{
	struct dp_tids tids;
	int err = read_page(f, pid, ret);
	if (err != ESRCH)
		return err;
	if (!dp_proc_tids(pid, &tids))
		return ENOMEM;
	for (size_t i = 0; err == ESRCH && i < tids.n; i++)
		if (tids.tid[i] != pid)
			err = read_page(f, tids.tid[i], ret);
	free(tids.tid);
	return err;
}

static bool inspect_one(struct dp_followers *f, pid_t pid)
{
	struct page page = {0};
	const int err = read_any(f, pid, &page);
	if (err == ESRCH || err == EFAULT)
		return true;
	if (err)
		return add(f, (struct follower){.pid = pid, .unreadable = true});
	if (page.live && page.live != DP_JOINED)
		return true; /* the target itself, through a vfork child */
	return add(f, (struct follower){.pid = pid, .process = page.live ? (uint32_t)page.process : 0});
}

static bool inspect_if_other(pid_t pid, void *data)
{
	struct dp_target *t = data;
	if (pid != t->process.pid && pid != getpid())
		t->followers->incomplete |= !inspect_one(t->followers, pid);
	return true;
}

static void inspect(struct dp_target *t)
{
	struct dp_followers *f = t->followers;
	f->n = 0;
	f->joined = __atomic_load_n(&page_of(t)->joined, __ATOMIC_SEQ_CST);
	f->incomplete = false;
	f->incomplete |= !dp_proc_each(inspect_if_other, t);
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

static pid_t innermost_pid(pid_t pid)
{
	struct dp_buf status;
	bool nested;
	dp_buf_init(&status);
	const pid_t ret = dp_proc_slurp(&status, "/proc/%d/status", pid) ? dp_status_ns_pid(dp_buf_str(&status), &nested) : 0;
	dp_buf_fini(&status);
	return ret;
}

static bool runs(pid_t pid, pid_t tid)
{
	struct dp_task_stat stat;
	return dp_proc_stat(pid, tid, &stat) && stat.state != 'Z' && stat.state != 'X';
}

/* For one whose number is not known. */
static bool may_be(struct follower *one, pid_t pid)
{
	if (!one->inner)
		one->inner = innermost_pid(one->pid);
	return one->inner == pid;
}

/* `data` is as for the target's own threads; its first member is the target. */
static enum dp_owner_state owner_state(const struct dp_slot_owner *owner, void *data)
{
	const struct dp_target *t = *(const struct dp_target *const *)data;
	struct dp_followers *f = t->followers;
	if (!owner->process)
		return t->gone ? DP_OWNER_PROCESS_ENDED : owner->tid ? DP_OWNER_ENDED : DP_OWNER_LIVES;
	if (f->incomplete || owner->process > f->joined)
		return DP_OWNER_LIVES;
	for (size_t i = 0; i < f->n; i++) {
		const struct follower *one = &f->item[i];
		if (one->process == owner->process) /* in another pid namespace its threads' ids are others */
			return one->pid != owner->pid || runs(one->pid, owner->tid) ? DP_OWNER_LIVES : DP_OWNER_ENDED;
	}
	for (size_t i = 0; i < f->n; i++)
		if (!f->item[i].process && may_be(&f->item[i], owner->pid))
			return DP_OWNER_LIVES;
	return DP_OWNER_PROCESS_ENDED;
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
	t->followers->data = t->in.region[DP_REGION_DATA].addr;
	t->followers->private = t->in.private.addr;
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

/* ---- the end ----------------------------------------------------------------------------------------------------------------- */

struct cleaning {
	struct dp_target *t;
	struct dp_follow_report *report;
	uint64_t until_ns;
};

/* What dp_target_open() does with the leftover of a fork. False: try again later. */
static bool clean_one(const struct cleaning *c, pid_t pid)
{
	struct dp_target_options options = c->t->options;
	struct dp_target *child = NULL;
	options.follow = options.gates = false;
	options.progress = NULL;
	struct dp_error *err = dp_target_open(pid, &options, &child);
	if (err)
		snprintf(c->report->why, sizeof(c->report->why), "process %d: %s", pid, err->message);
	dp_target_close(child);
	const bool done = !err;
	dp_error_destroy(err);
	return done;
}

/* One round over those that are there now. True if there was none. */
static bool clean_round(const struct cleaning *c)
{
	const struct dp_followers *f = c->t->followers;
	size_t found = 0;
	inspect(c->t);
	c->report->left = 0;
	for (size_t i = 0; i < f->n; i++) {
		if (f->item[i].unreadable)
			continue;
		found++;
		if (dp_now_ns() >= c->until_ns) {
			snprintf(c->report->why, sizeof(c->report->why), "process %d: there was no time left", f->item[i].pid);
			c->report->left++;
		} else if (clean_one(c, f->item[i].pid)) {
			c->report->cleaned++;
		} else {
			c->report->left++;
		}
	}
	return !found;
}

void dp_target_unfollow(struct dp_target *t, struct dp_follow_report *report)
{
	const struct cleaning c = {t, report, dp_now_ns() + CLEAN_NS};
	*report = (struct dp_follow_report){0};
	if (!t->followers || !t->data)
		return;
	while (!clean_round(&c) && dp_now_ns() < c.until_ns)
		nanosleep(&(struct timespec){.tv_nsec = ROUND_NS}, NULL);
	__atomic_store_n(&page_of(t)->on, 0, __ATOMIC_SEQ_CST);
	report->processes = __atomic_load_n(&page_of(t)->processes, __ATOMIC_RELAXED);
}
