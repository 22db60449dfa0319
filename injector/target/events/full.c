/* SPDX-License-Identifier: MIT */
/*
 * Hits that wait where their ring is full: the tool's side of agent/ring/full.c. The target can write to the words that are used
 * for that: then its threads wait too long or not at all, and the counts are wrong.
 */
#include "injector/target/events/cage.h"

#include "injector/ring/drain.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static struct dp_on_full *page_of(const struct dp_target *t)
{
	return &((struct dp_control *)(void *)t->data)->on_full;
}

struct dp_error *dp_target_full_check(const struct dp_target *t)
{
	if (t->options.block_ns)
		return dp_cage_check(t, "a hit that waits for room in its ring makes system calls", "omit --on-full block");
	if (t->options.overwrite)
		return dp_cage_check(t, "rings that overwrite themselves need system calls", "omit --overwrite");
	return NULL;
}

static bool same_file(const char *a, const char *b)
{
	struct stat x, y;
	return !stat(a, &x) && !stat(b, &y) && x.st_ino == y.st_ino && x.st_dev == y.st_dev;
}

/* Threads that wait ask whether this process lives. In another pid namespace the number would be another process's. */
static uint32_t own_pid_there(const struct dp_target *t)
{
	char theirs[64];
	snprintf(theirs, sizeof(theirs), "/proc/%d/ns/pid", t->process.pid);
	return same_file("/proc/self/ns/pid", theirs) ? (uint32_t)getpid() : 0;
}

struct dp_error *dp_full_init(struct dp_target *t)
{
	struct dp_on_full *f = page_of(t);
	((struct dp_control *)(void *)t->data)->overwrite = t->options.overwrite;
	t->overwrites = t->options.overwrite;
	if (!t->options.block_ns)
		return NULL;
	DP_TRY(dp_aggs_tick(&f->tick));
	DP_TRY(dp_ticks_of(t->options.block_ns, &f->wait_ticks));
	f->tool = own_pid_there(t);
	f->children = t->options.follow;
	f->served = 1;
	dp_drain_serve(t->drain, true);
	return NULL;
}

void dp_full_look(struct dp_target *t)
{
	if (!t->options.block_ns && !t->overwrites)
		return;
	dp_cage_look(t);
	if (t->cage.child)
		__atomic_store_n(&page_of(t)->children, 0, __ATOMIC_RELEASE);
	if (!t->cage.all)
		return;
	dp_full_leave(t);
	__atomic_store_n(&((struct dp_control *)(void *)t->data)->overwrite, 0, __ATOMIC_SEQ_CST);
}

void dp_full_leave(struct dp_target *t)
{
	if (t->drain)
		dp_drain_serve(t->drain, false);
}

bool dp_target_awaited(const struct dp_target *t)
{
	return t->drain && dp_drain_awaited(t->drain);
}

void dp_target_rest(const struct dp_target *t, int ms)
{
	if (t->drain)
		dp_drain_rest(t->drain, ms);
}

void dp_target_full_counts(const struct dp_target *t, struct dp_full_counts *ret)
{
	*ret = (struct dp_full_counts){0};
	if (!t->data || !t->options.block_ns)
		return;
	const struct dp_on_full *f = page_of(t);
	const uint64_t ticks = __atomic_load_n(&f->ticks, __ATOMIC_RELAXED);
	*ret = (struct dp_full_counts){.hits = __atomic_load_n(&f->hits, __ATOMIC_RELAXED),
	                               .late = __atomic_load_n(&f->late, __ATOMIC_RELAXED),
	                               .ns = (uint64_t)((unsigned __int128)ticks * f->tick >> 32)};
}
