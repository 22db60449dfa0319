/* SPDX-License-Identifier: MIT */
/*
 * Cleans the fork children of a target, at the end of its probes (decision 0038). fork() copies patched text, and shares our memory.
 *
 * Each child is opened as a target of its own: dp_recover() finds the leftover of a fork there and removes it. A vfork child is
 * left alone, because its text is its parent's. Children that fork meanwhile are why there are rounds.
 */
#include "injector/target/events/holders.h"
#include "injector/target/target.h"
#include "injector/tracee/proc/proc.h"

#include <linux/kcmp.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS_NS UINT64_C(10000000000)
#define RETRY_NS  UINT64_C(3000000000) /* for one that cannot be cleaned now, but perhaps in a moment */
#define VAIN_NS   UINT64_C(10000000000) /* for all that cannot be */
#define ROUND_NS  5000000L

/* The kernel's include/linux/sched.h: forked, and has not called exec since. */
#define PF_FORKNOEXEC 0x00000040u

struct child {
	pid_t pid;
	uint64_t start_time, first_ns; /* of the first attempt */
	struct dp_error *why; /* of the last attempt */
	bool here;            /* in this round's search */
	bool lasting;         /* further attempts are useless */
};

struct cleaning {
	struct dp_target *t;
	uint64_t born_after;          /* start time of the oldest process that may be a child */
	struct child *child;
	size_t n, cap;
	unsigned cleaned;
	uint64_t vain_ns; /* spent on attempts that failed */
};

/* ---- search ---------------------------------------------------------------------------------------------------------- */

static struct child *find(const struct cleaning *c, pid_t pid)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->child[i].pid == pid)
			return &c->child[i];
	return NULL;
}

static struct child *add(struct cleaning *c)
{
	if (c->n == c->cap) {
		const size_t cap = c->cap ? 2 * c->cap : 32;
		struct child *grown = realloc(c->child, cap * sizeof(*grown));
		if (!grown)
			return NULL;
		c->child = grown;
		c->cap = cap;
	}
	c->child[c->n] = (struct child){0};
	return &c->child[c->n++];
}

static bool note(struct cleaning *c, pid_t pid, uint64_t start_time)
{
	struct child *one = find(c, pid);
	if (!one)
		one = add(c);
	if (!one)
		return false;
	if (one->start_time != start_time) { /* new, or its pid belonged to another one */
		dp_error_destroy(one->why);
		*one = (struct child){.pid = pid, .start_time = start_time};
	}
	one->here = true;
	return true;
}

/* It may not be read. A child of a process that has our memory has it as well, unless it executed a program. */
static bool may_be_child(const struct cleaning *c, const struct dp_task_stat *stat)
{
	const bool of_ours = stat->ppid == c->t->process.pid || find(c, stat->ppid);
	return of_ours && (stat->flags & PF_FORKNOEXEC) && stat->start_time >= c->born_after;
}

static bool on_holder(const struct dp_holder *h, void *data)
{
	struct cleaning *c = data;
	struct dp_task_stat stat;
	if (h->live && h->live != DP_JOINED)
		return true; /* the target itself, through a vfork child */
	if (!dp_proc_stat(h->pid, 0, &stat))
		return true;
	if (h->unreadable)
		return !may_be_child(c, &stat) || note(c, h->pid, stat.start_time);
	if (!syscall(SYS_kcmp, h->pid, stat.ppid, KCMP_VM, 0, 0))
		return true;
	return note(c, h->pid, stat.start_time);
}

static void search(struct cleaning *c, const struct dp_group_at *at)
{
	if (at->data)
		dp_holders_find(at, c->t->process.pid, on_holder, c);
}

/* Where this tool's own probes are, or were. */
static struct dp_group_at own(const struct dp_target *t)
{
	if (!t->data)
		return (struct dp_group_at){0};
	return (struct dp_group_at){t->in.region[DP_REGION_DATA].addr, t->in.private.addr};
}

/* ---- cleaning -------------------------------------------------------------------------------------------------------- */

static bool has_ended(const struct dp_error *err)
{
	return err->tag == DP_TAG_NO_PROCESS || err->tag == DP_TAG_ZOMBIE || err->tag == DP_TAG_GONE;
}

/* For reasons that do not go away by themselves. */
static bool lasts(const struct dp_error *err)
{
	return err->tag != DP_TAG_VFORK && err->tag != DP_TAG_UNSTOPPABLE && err->tag != DP_TAG_BUSY &&
	       err->tag != DP_TAG_NO_THREAD && err->tag != DP_TAG_CHANGED;
}

/* A removal would wait for a thread in vfork() for ten seconds at each of its steps. */
static struct dp_error *check_vfork(pid_t pid)
{
	struct dp_error *err = NULL;
	struct dp_tids tids;
	if (!dp_proc_tids(pid, &tids))
		return dp_error_nomem();
	for (size_t i = 0; i < tids.n && !err; i++)
		if (dp_proc_in_vfork(pid, tids.tid[i]))
			err = dp_error(DP_TAG_VFORK, "thread %d of process %d waits for its vfork child and cannot be stopped",
			               tids.tid[i], pid);
	free(tids.tid);
	return err;
}

static struct dp_error *open_and_close(const struct cleaning *c, pid_t pid)
{
	struct dp_target_options options = c->t->options;
	struct dp_target *target = NULL;
	options.follow = options.gates = options.look = false;
	options.progress = NULL;
	DP_TRY(check_vfork(pid));
	struct dp_error *err = dp_target_open(pid, &options, &target);
	dp_target_close(target);
	return err;
}

static void clean_one(struct cleaning *c, struct child *one)
{
	const uint64_t begin_ns = dp_now_ns();
	if (!one->first_ns)
		one->first_ns = begin_ns;
	one->why = dp_error_destroy(one->why);
	one->why = open_and_close(c, one->pid);
	const uint64_t now = dp_now_ns();
	c->vain_ns += one->why ? now - begin_ns : 0;
	c->cleaned += !one->why;
	if (one->why && has_ended(one->why))
		one->why = dp_error_destroy(one->why);
	one->here = one->why;
	one->lasting = one->why && (lasts(one->why) || now - one->first_ns > RETRY_NS);
}

/* False: no process is left that could be cleaned, or no further one is wanted. */
static bool round_of(struct cleaning *c, bool (*stop)(void *data), void *data)
{
	bool any = false;
	for (size_t i = 0; i < c->n; i++) {
		struct child *one = &c->child[i];
		if (!one->here || one->lasting)
			continue;
		if (c->vain_ns > VAIN_NS || (stop && stop(data)))
			return false;
		clean_one(c, one);
		any = true;
	}
	return any;
}

static void search_all(struct cleaning *c, bool resident)
{
	const struct dp_target *t = c->t;
	const struct dp_group_at mine = own(t);
	for (size_t i = 0; i < c->n; i++)
		c->child[i].here = false;
	search(c, &mine);
	for (size_t i = 0; i < (resident ? t->nfound : t->nfound_left); i++)
		search(c, &t->found[i]);
	if (resident) /* also those of groups that others removed from it */
		dp_holders_of(t->process.pid, t->process.start_time, on_holder, c);
}

/* ---- report ---------------------------------------------------------------------------------------------------------- */

static struct dp_error *out_of_time(pid_t pid)
{
	return dp_error(DP_TAG_BUSY, "dynprobe ended before its turn; dynprobe detach --pid %d removes them", pid);
}

static void report(struct cleaning *c, struct dp_children *ret)
{
	ret->cleaned = c->cleaned;
	ret->left = calloc(c->n + 1, sizeof(*ret->left));
	for (size_t i = 0; i < c->n; i++) {
		struct child *one = &c->child[i];
		if (!ret->left || !one->here) {
			dp_error_destroy(one->why);
			continue;
		}
		struct dp_uncleaned *left = &ret->left[ret->nleft++];
		left->pid = one->pid;
		left->why = one->why ? one->why : out_of_time(one->pid);
		dp_proc_comm(one->pid, left->comm, sizeof(left->comm));
	}
}

void dp_target_clean_children(struct dp_target *t, bool resident, bool (*stop)(void *data), void *data, struct dp_children *ret)
{
	const uint64_t until = dp_now_ns() + ROUNDS_NS;
	struct cleaning c = {.t = t, .born_after = dp_process_start_time(resident ? t->process.pid : getpid())};
	*ret = (struct dp_children){0};
	search_all(&c, resident);
	while (dp_now_ns() < until && round_of(&c, stop, data)) {
		nanosleep(&(struct timespec){.tv_nsec = ROUND_NS}, NULL);
		search_all(&c, resident);
	}
	report(&c, ret);
	free(c.child);
}

pid_t *dp_target_children(struct dp_target *t, size_t *n)
{
	struct cleaning c = {.t = t, .born_after = UINT64_MAX};
	search_all(&c, true);
	pid_t *ret = malloc((c.n + 1) * sizeof(*ret));
	*n = ret ? c.n : 0;
	for (size_t i = 0; i < *n; i++)
		ret[i] = c.child[i].pid;
	free(c.child);
	return ret;
}

void dp_children_fini(struct dp_children *c)
{
	for (size_t i = 0; i < c->nleft; i++)
		dp_error_destroy(c->left[i].why);
	free(c->left);
	*c = (struct dp_children){0};
}
