/* SPDX-License-Identifier: MIT */
/*
 * The target can write to all of this memory, so nothing in it is trusted: registers are data, and an invalid state is repaired.
 */
#include "injector/park.h"

#include "injector/target/events/cage.h"
#include "injector/target/events/followers.h"
#include "injector/target/target.h"
#include "injector/tracee/proc/proc.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ID_TOP   (UINT64_C(1) << 47)
#define WATCH_NS UINT64_C(100000000)

static struct dp_control *control_of(const struct dp_target *t)
{
	return (void *)t->data;
}

static struct dp_park *park_of(const struct dp_target *t)
{
	return t->installed ? &control_of(t)->park : NULL;
}

static bool move(struct dp_park *p, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(&p->state, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static void wake(struct dp_park *p)
{
	syscall(SYS_futex, &p->state, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

struct dp_error *dp_park_check(const struct dp_target *t)
{
	char instead[80];
	snprintf(instead, sizeof(instead), "take the snapshot from outside: dynprobe snapshot %d", t->process.pid);
	return dp_cage_check(t, "a hit that waits for its snapshot makes system calls", instead);
}

void dp_park_want(struct dp_target *t, const struct dp_park_limits *limits)
{
	t->park = *limits;
}

struct dp_error *dp_park_init(struct dp_target *t)
{
	struct dp_park *p = &control_of(t)->park;
	uint64_t rest = 0;
	if (!t->park.on)
		return NULL;
	DP_TRY(dp_ticks_of(t->park.interval_ns, &p->interval));
	DP_TRY(dp_ticks_of(t->park.rest_ns, &rest));
	p->next_tsc = rest ? __builtin_ia32_rdtsc() + rest : 0;
	p->left = t->park.hits;
	p->wait_ns = t->park.wait_ns;
	if (getrandom(&p->salt, sizeof(p->salt), 0) != sizeof(p->salt))
		p->salt = dp_now_ns();
	p->salt = (p->salt & (ID_TOP / 2 - 1)) | ID_TOP; /* twelve digits, and room for all later ids */
	__atomic_store_n(&control_of(t)->follow.parks, t->options.follow, __ATOMIC_RELEASE);
	p->served = 1;
	return NULL;
}

void dp_park_leave(struct dp_target *t)
{
	struct dp_park *p = park_of(t);
	if (!p)
		return;
	__atomic_store_n(&p->served, 0, __ATOMIC_RELEASE);
	dp_park_release(t);
}

static void copy_regs(const struct dp_regs *from, struct user_regs_struct *to)
{
	unsigned long long *const gpr[16] = {&to->rax, &to->rcx, &to->rdx, &to->rbx, &to->rsp, &to->rbp, &to->rsi, &to->rdi,
	                                     &to->r8,  &to->r9,  &to->r10, &to->r11, &to->r12, &to->r13, &to->r14, &to->r15};
	memset(to, 0, sizeof(*to));
	for (unsigned i = 0; i < 16; i++)
		*gpr[i] = from->gpr[i];
	to->rip = from->rip;
	to->eflags = from->rflags;
	to->orig_rax = ~0ULL;
}

/* For another pid namespace, where the thread's id in ours is unknown. */
static bool has_ns_tid(const struct dp_target *t, pid_t pid, pid_t ns_tid)
{
	struct dp_tids tids;
	struct dp_thread_status status;
	bool found = false;
	if (!dp_proc_tids(pid, &tids))
		return false; /* it has ended */
	for (size_t i = 0; i < tids.n && !found; i++)
		found = dp_thread_status_read(t, pid, tids.tid[i], &status) && status.ns_tid == ns_tid;
	free(tids.tid);
	return found;
}

/* A waiting thread should not wait for a long check. */
static bool is_due_for_check(struct dp_target *t)
{
	const uint64_t now = dp_now_ns();
	if (!t->park_stuck_ns)
		t->park_stuck_ns = now;
	if (now - t->park_stuck_ns < WATCH_NS)
		return false;
	t->park_stuck_ns = now;
	return true;
}

/* A thread killed while it waited, or after its answer, leaves its place occupied. */
static bool is_gone(struct dp_target *t, pid_t pid, uint32_t ns_tid)
{
	char path[64];
	if (t->process.nested || pid != t->process.pid)
		return is_due_for_check(t) && !has_ns_tid(t, pid, (pid_t)ns_tid);
	snprintf(path, sizeof(path), "/proc/%d/task/%u", pid, ns_tid);
	return access(path, F_OK) != 0;
}

/* The process of the thread that waits; else as dp_followers_pid(). */
static pid_t process_of(struct dp_target *t, uint64_t process)
{
	return process ? dp_followers_pid(t, (uint32_t)process) : t->process.pid;
}

/* The owner died. Nobody else changes the state of a place that has an owner. */
static void vacate(struct dp_park *p, uint64_t owner)
{
	__atomic_store_n(&p->state, DP_PARK_FREE, __ATOMIC_RELEASE);
	__atomic_compare_exchange_n(&p->owner, &owner, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

bool dp_park_inspect(struct dp_target *t, struct dp_park_hit *ret)
{
	struct dp_park *p = park_of(t);
	if (!p)
		return false;
	dp_cage_look(t);
	if (t->cage.child)
		__atomic_store_n(&control_of(t)->follow.parks, 0, __ATOMIC_RELEASE);
	if (t->cage.all) {
		dp_park_leave(t);
		return false;
	}
	__atomic_store_n(&p->served, 1, __ATOMIC_RELEASE); /* we are here, even if a thread gave up on us meanwhile */
	const uint32_t state = __atomic_load_n(&p->state, __ATOMIC_ACQUIRE);
	const uint64_t owner = __atomic_load_n(&p->owner, __ATOMIC_ACQUIRE);
	if (!owner) {
		t->park_stuck_ns = 0;
		return false;
	}
	const pid_t pid = process_of(t, owner >> 32);
	if (pid == DP_FOLLOWER_HIDDEN && state == DP_PARK_PARKED) {
		__atomic_fetch_add(&p->left, 1, __ATOMIC_RELAXED); /* it was no snapshot */
		dp_park_release(t);
		return false;
	}
	if (pid == DP_FOLLOWER_ENDED || (pid > 0 && is_gone(t, pid, (uint32_t)owner))) {
		vacate(p, owner);
		return false;
	}
	if (state != DP_PARK_PARKED || pid <= 0)
		return false;
	*ret = (struct dp_park_hit){
	        .id = p->id, .pid = pid, .ns_tid = (pid_t)(uint32_t)owner, .probe = (unsigned)p->probe, .seen_ns = dp_now_ns()};
	copy_regs(&p->regs, &ret->regs);
	return true;
}

bool dp_park_take(struct dp_target *t, const struct dp_park_hit *hit)
{
	struct dp_park *p = park_of(t);
	if (!p || p->id != hit->id || (pid_t)(uint32_t)p->owner != hit->ns_tid)
		return false;
	if (__atomic_load_n(&p->state, __ATOMIC_ACQUIRE) != DP_PARK_KEPT && !move(p, DP_PARK_PARKED, DP_PARK_KEPT))
		return false;
	__atomic_store_n(&p->served, 0, __ATOMIC_RELEASE); /* until the next look no thread should wait */
	return true;
}

bool dp_park_waits(const struct dp_target *t, const struct dp_park_hit *hit)
{
	const struct dp_park *p = park_of(t);
	return p && p->id == hit->id && __atomic_load_n(&p->state, __ATOMIC_ACQUIRE) == DP_PARK_KEPT &&
	       dp_now_ns() - hit->seen_ns < p->wait_ns / 4 * 3;
}

void dp_park_done(struct dp_target *t)
{
	struct dp_park *p = park_of(t);
	if (!p)
		return;
	move(p, DP_PARK_KEPT, DP_PARK_DONE);
	wake(p);
}

bool dp_park_release(struct dp_target *t)
{
	struct dp_park *p = park_of(t);
	if (!p)
		return false;
	const bool waited = move(p, DP_PARK_PARKED, DP_PARK_REFUSED) || move(p, DP_PARK_KEPT, DP_PARK_REFUSED);
	wake(p);
	return waited;
}

void dp_park_bound(struct dp_target *t, uint32_t left, uint64_t rest_ns)
{
	struct dp_park *p = park_of(t);
	uint64_t rest = 0;
	if (!p || !t->park.on)
		return;
	dp_error_destroy(dp_ticks_of(rest_ns, &rest)); /* it worked before; otherwise the tool's own clock check decides */
	__atomic_store_n(&p->next_tsc, __builtin_ia32_rdtsc() + rest, __ATOMIC_RELAXED);
	__atomic_store_n(&p->left, left, __ATOMIC_RELAXED);
}

void dp_park_counts(const struct dp_target *t, struct dp_park_counts *ret)
{
	const struct dp_park *p = t->data ? &control_of(t)->park : NULL; /* also after the probes were removed */
	*ret = (struct dp_park_counts){0};
	if (p)
		*ret = (struct dp_park_counts){
		        __atomic_load_n(&p->late, __ATOMIC_RELAXED), __atomic_load_n(&p->missed, __ATOMIC_RELAXED),
		        __atomic_load_n(&p->over, __ATOMIC_RELAXED), __atomic_load_n(&p->left, __ATOMIC_RELAXED)};
}
