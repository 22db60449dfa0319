/* SPDX-License-Identifier: MIT */
/* The tool's side of agent/loaded.c. */
#include "injector/loads.h"
#include "base/path.h"

#include "injector/target/target.h"
#include "injector/tracee/proc/filter.h"

#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const char glibc_loader[] = "ld-linux-x86-64.so.2";

static bool is_loader(const char *path)
{
	return !strcmp(dp_path_last(path), glibc_loader);
}

struct dp_error *dp_loads_check(struct dp_target *t)
{
	bool found = false;
	const char *why = dp_filter_forbids(&t->process, DP_CALLS_HIT);
	if (why)
		return dp_error(DP_TAG_PENDING, "process %d (%s) is under a seccomp filter (%s), but waiting takes system calls",
		                t->process.pid, t->process.comm, why);
	for (size_t i = 0; i < dp_image_nmaps(t->image) && !found; i++)
		found = dp_image_map(t->image, i)->exec && is_loader(dp_image_map(t->image, i)->path);
	return found ? NULL
	             : dp_error(DP_TAG_PENDING,
	                        "process %d (%s) does not use glibc's dynamic loader (%s), which reports loaded libraries",
	                        t->process.pid, t->process.comm, glibc_loader);
}

uint64_t dp_loads_hook(const struct dp_target *t)
{
	struct dp_agent_image agent;
	struct dp_error *err = dp_agent_image_load(&agent);
	if (!err)
		return t->in.region[DP_REGION_TEXT].addr + agent.loaded;
	dp_error_destroy(err);
	return 0;
}

/* ---- the control page's words ---------------------------------------------------------------------------------------------- */

static struct dp_control *control_of(const struct dp_target *t)
{
	return t->installed ? (struct dp_control *)(void *)t->data : NULL;
}

static void wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/*
 * A tool that leaves answers all as well: a thread that has just seen that it is served, and does not sleep yet, would miss the
 * call that wakes it. One that comes later sees that nobody answers.
 */
void dp_loads_serve(struct dp_target *t, bool on)
{
	struct dp_control *c = control_of(t);
	if (!c)
		return;
	__atomic_store_n(&c->loads_wait_ns, t->options.max_wait_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&c->loads_served, on, __ATOMIC_SEQ_CST);
	if (!on)
		__atomic_store_n(&c->loads_done, __atomic_load_n(&c->loads, __ATOMIC_SEQ_CST), __ATOMIC_SEQ_CST);
	wake(&c->loads_done);
}

bool dp_loads_wait(struct dp_target *t, int ms)
{
	struct dp_control *c = control_of(t);
	const struct timespec limit = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
	if (!c)
		return false;
	/* Only this tool writes loads_done, and only values it has read: equal means that nothing is new. */
	if (__atomic_load_n(&c->loads, __ATOMIC_ACQUIRE) == t->loads_seen && ms > 0)
		syscall(SYS_futex, &c->loads, FUTEX_WAIT, t->loads_seen, &limit, NULL, 0);
	const uint32_t now = __atomic_load_n(&c->loads, __ATOMIC_ACQUIRE);
	const bool news = now != t->loads_seen;
	t->loads_seen = now;
	return news;
}

void dp_loads_hurry(struct dp_target *t)
{
	if (!t->hurried)
		dp_priority_raise(&t->unhurried);
	t->hurried = true;
}

void dp_loads_answer(struct dp_target *t)
{
	struct dp_control *c = control_of(t);
	if (c) {
		__atomic_store_n(&c->loads_done, t->loads_seen, __ATOMIC_RELEASE);
		dp_loads_serve(t, true);
	}
	if (t->hurried)
		dp_priority_restore(&t->unhurried);
	t->hurried = false;
}

uint32_t dp_loads_late(const struct dp_target *t)
{
	const struct dp_control *c = control_of(t);
	return c ? __atomic_load_n(&c->loads_late, __ATOMIC_ACQUIRE) : 0;
}

/* ---- what is mapped -------------------------------------------------------------------------------------------------------- */

bool dp_loads_still_there(struct dp_target *t, const struct dp_image *now, uint64_t addr)
{
	const struct dp_map *was = dp_image_map_at(t->image, dp_addr_of(addr)), *is = dp_image_map_at(now, dp_addr_of(addr));
	return was && is && is->exec && was->inode == is->inode && was->dev_major == is->dev_major &&
	       was->dev_minor == is->dev_minor && !strcmp(was->path, is->path) &&
	       addr - was->start.v + was->offset == addr - is->start.v + is->offset;
}

bool dp_loads_fresh(struct dp_target *t, size_t plan)
{
	const struct dp_placed *p = &t->in.placed[plan];
	uint8_t now[sizeof(p->old_bytes)], file[sizeof(p->old_bytes)];
	dp_placed_file_bytes(&t->in, plan, file);
	return dp_mem_read(&t->process, dp_addr_of(p->addr), now, p->len) == p->len && !memcmp(now, file, p->len);
}
