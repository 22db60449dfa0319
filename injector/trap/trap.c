/* SPDX-License-Identifier: MIT */
#include "injector/trap/trap.h"
#include "injector/tracee/proc/proc.h"

#include "injector/target/group/group.h"
#include "injector/target/shared.h"
#include "injector/tracee/proc/filter.h"
#include "injector/tracee/stop/asleep.h"

#include "base/cleanup.h"
#include "probes/hazard/hazard.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ARM_TRIES     200
#define REST_NS       3000000L
#define OPTIONAL_NS   UINT64_C(500000000) /* held in vain for a handler that is not needed */
#define GO_BUILD_INFO "\xff Go buildinf:"

/* ---- can traps be used? ----------------------------------------------------------------------------------------------- */

static struct dp_error *unsafe(const struct dp_target *t, const char *what)
{
	return dp_error(DP_TAG_TRAP_UNSAFE, "process %d (%s) %s", t->process.pid, t->process.comm, what);
}

/* Go's scheduler runs on stacks that a hook's C code might overflow. */
static bool is_go(struct dp_target *t)
{
	struct dp_module *m = dp_image_nmodules(t->image) ? dp_image_module(t->image, 0) : NULL;
	for (size_t i = 0; m && i < dp_module_nsegments(m); i++) {
		dp_addr addr;
		const uint8_t *bytes;
		size_t n;
		bool exec;
		if (dp_module_segment(m, i, &addr, &bytes, &n, &exec) && n && !exec &&
		    memmem(bytes, n, GO_BUILD_INFO, sizeof(GO_BUILD_INFO) - 1))
			return true;
	}
	return false;
}

/*
 * The first module with Go code, or NULL. On Go's small stacks the agent reads fields with all signals blocked: a fault there
 * would not reach the handler, and kill the process.
 */
static struct dp_module *find_go(struct dp_target *t)
{
	for (size_t i = 0; i < dp_image_nmodules(t->image); i++) {
		struct dp_module *m = dp_image_module(t->image, i);
		if (m && dp_module_small_stacks(m))
			return m;
	}
	return NULL;
}

struct dp_error *dp_target_trap_check(struct dp_target *t)
{
	if (t->process.seccomp || dp_filter_forbids(&t->process, DP_CALLS_HIT))
		return unsafe(t, "runs under a seccomp filter, which may forbid the system calls of a hook");
	if (dp_proc_mask(t->process.pid, t->process.alive, "SigIgn") & DP_TRAP_BIT)
		return unsafe(t, "ignores SIGTRAP, and programs that it executes must inherit that");
	if (t->sink)
		return unsafe(
		        t, "has probes that emit through LTTng, whose hits block all signals for a time; traps need --sink ring");
	for (size_t i = 0; i < t->nstanding; i++) {
		if (t->resident[i]->in.trap)
			return unsafe(t, "already has probes with traps of an earlier dynprobe; remove them first");
		if (t->resident[i]->in.sink)
			return unsafe(t, "has probes of an earlier dynprobe that emit through LTTng, whose hits block all "
			                 "signals for a time");
	}
	struct dp_module *go = find_go(t);
	if (go && go != dp_image_module(t->image, 0))
		return dp_error(DP_TAG_TRAP_UNSAFE,
		                "process %d (%s) has loaded Go code (%s), whose stacks are too small for signals", t->process.pid,
		                t->process.comm, dp_module_name(go));
	return go || is_go(t) ? unsafe(t, "is a Go program: its stacks are too small for hooks on system calls") : NULL;
}

/* ---- the hooks and what the handler needs -------------------------------------------------------------------------------- */

struct dp_error *dp_target_trap_room(struct dp_target *t, const struct dp_hook_place *hook, size_t nhooks)
{
	if (nhooks > DP_HOOKS_MAX)
		return unsafe(t, "makes system calls in more places than dynprobe can hook");
	struct dp_hook_place *copy = malloc((nhooks + 1) * sizeof(*copy));
	if (!copy)
		return dp_error_nomem();
	for (size_t i = 0; i < nhooks; i++)
		copy[i] = hook[i];
	free(t->trap.hook);
	t->trap.hook = copy;
	t->trap.nhooks = nhooks;
	t->trap.wanted = hook != NULL;
	return NULL;
}

uint64_t dp_target_trap_hook(const struct dp_target *t)
{
	return t->trap.entry;
}

static bool ignores_faults(const struct dp_target *t)
{
	return dp_proc_mask(t->process.pid, t->process.alive, "SigIgn") & DP_FAULT_BITS;
}

struct dp_error *dp_target_faults_check(const struct dp_target *t)
{
	return ignores_faults(t)
	               ? unsafe(t, "ignores a signal that a bad pointer raises, and programs that it executes must inherit that")
	               : NULL;
}

void dp_target_faults_want(struct dp_target *t, bool on)
{
	t->trap.faults = on && !ignores_faults(t);
	t->trap.later = t->trap.waits = false;
	t->trap.why[0] = 0;
}

bool dp_target_faults_ready(const struct dp_target *t)
{
	return t->trap.faults && t->trap.wanted && !t->trap.later;
}

/* ---- installing ---------------------------------------------------------------------------------------------------------- */

/* The signals whose handlers must have these flags. */
static uint64_t alike(const struct dp_trap_action *own, uint64_t signals, uint64_t flags)
{
	uint64_t same = 0;
	for (unsigned sig = 1; sig < DP_TRAP_SIGNALS; sig++)
		if ((signals & DP_TRAP_BIT_OF(sig)) && dp_trap_flags(sig, &own[sig - 1]) == flags)
			same |= DP_TRAP_BIT_OF(sig);
	return same;
}

static struct dp_error *put_handler(struct dp_target *t, struct dp_borrow *b, const struct dp_trap_action *own)
{
	for (uint64_t left = t->trap.signals; left;) {
		const unsigned sig = (unsigned)__builtin_ctzll(left) + 1;
		const struct dp_trap_action ours = {t->trap.handler, dp_trap_flags(sig, &own[sig - 1]), t->trap.restorer,
		                                    UINT64_MAX};
		const uint64_t same = alike(own, left, ours.flags);
		DP_TRY(dp_trap_set_actions(t, b, same, &ours));
		left &= ~same;
	}
	return NULL;
}

static struct dp_error *take_actions(struct dp_target *t, struct dp_borrow *b)
{
	struct dp_trap_action own[DP_TRAP_SIGNALS];
	const uint64_t at = t->in.trap + offsetof(struct dp_trap, action);
	DP_TRY(dp_trap_note_actions(&t->in, b, t->trap.signals));
	if (dp_mem_read(&t->process, dp_addr_of(at), own, sizeof(own)) != sizeof(own))
		return dp_error(DP_TAG_GONE, "process %d (%s) ended", t->process.pid, t->process.comm);
	for (unsigned sig = 1; sig < DP_TRAP_SIGNALS; sig++)
		if ((t->trap.signals & DP_TRAP_BIT_OF(sig)) && own[sig - 1].handler == 1)
			return unsafe(t, "ignores a signal that dynprobe needs, and programs that it executes must inherit that");
	struct dp_error *err = put_handler(t, b, own);
	if (err)
		dp_error_destroy(dp_trap_give_actions(&t->in, b, t->trap.signals));
	return err;
}

/* Records the program's actions, which it continues to see, then installs the handler. */
static struct dp_error *take_over(struct dp_target *t, struct dp_borrow *b)
{
	uint64_t masks[DP_TRAP_SIGNALS] = {0};
	DP_TRY(dp_trap_masks(t, b, t->in.trap, t->trap.signals, masks));
	DP_TRY(DP_TRAP_PUT(t, t->in.trap, masks, &masks)); /* before they change, so that a later tool finds them if we die */
	struct dp_error *err = dp_trap_strip(t, b, t->in.trap, t->trap.signals, masks);
	if (!err)
		err = take_actions(t, b);
	if (!err)
		return NULL;
	dp_error_destroy(dp_trap_unstrip(t, b, t->in.trap, masks));
	return err;
}

static struct dp_error *borrow_and_take_over(struct dp_target *t, struct dp_freeze *f)
{
	struct dp_borrow *b = NULL;
	DP_TRY(dp_borrow_held(t, f, &b));
	struct dp_error *err = take_over(t, b);
	struct dp_error *end = dp_borrow_end(b, NULL);
	if (!err)
		return end;
	dp_error_destroy(end);
	return err;
}

/* Signals that the program ignores stay ignored, unless we need them. */
static uint64_t choose_signals(const struct dp_target *t)
{
	const uint64_t ignored = dp_proc_mask(t->process.pid, t->process.alive, "SigIgn");
	const uint64_t faults = t->trap.faults ? DP_FAULT_BITS | (DP_SHOWN_BITS & ~ignored) : 0;
	return DP_TRAP_BIT | faults;
}

static struct dp_error *check_threads(struct dp_target *t, const struct dp_freeze *f)
{
	t->trap.in_way = 0;
	for (size_t i = 0; i < f->n; i++) {
		const struct dp_held *h = &f->thread[i];
		const char *why = h->exited ? NULL : dp_trap_in_the_way(t, h);
		if (!why)
			continue;
		t->trap.in_way = h->tid;
		t->trap.in_way_pc = h->regs.rip;
		t->trap.in_way_sp = h->regs.rsp;
		return dp_error(DP_TAG_TRAP_UNSAFE, "thread %d of process %d (%s) %s", h->tid, t->process.pid, t->process.comm,
		                why);
	}
	return NULL;
}

/* The hooks are active from the first change on: they report the recorded state to each thread, and a later tool can undo it. */
static struct dp_error *take_over_held(struct dp_target *t, struct dp_freeze *f)
{
	const uint32_t armed = 1, idle = 0;
	DP_TRY(dp_stopped_ours(t));
	t->trap.signals = choose_signals(t);
	DP_TRY(check_threads(t, f));
	DP_TRY(DP_TRAP_PUT(t, t->in.trap, signals, &t->trap.signals));
	DP_TRY(DP_TRAP_PUT(t, t->in.trap, armed, &armed));
	struct dp_error *err = NULL;
	for (size_t i = 0; !err && i < f->n; i++)
		err = dp_trap_unblock(t, &f->thread[i]);
	if (!err)
		err = borrow_and_take_over(t, f);
	if (!err)
		return NULL;
	for (size_t i = 0; i < f->n; i++)
		dp_trap_block(t, t->in.trap, &f->thread[i]);
	dp_error_destroy(DP_TRAP_PUT(t, t->in.trap, armed, &idle));
	return err;
}

static struct dp_error *arm_once(struct dp_target *t)
{
	struct dp_freeze own = {0}, *f = t->launch ? dp_launch_freeze(t->launch) : &own;
	if (!t->launch)
		DP_TRY(dp_freeze_with_retry(t, &own));
	struct dp_error *err = take_over_held(t, f);
	if (!t->launch)
		dp_thaw_all(&own);
	if (own.end_ns - own.begin_ns > t->trap.held_ns)
		t->trap.held_ns = own.end_ns - own.begin_ns;
	return err;
}

void dp_trap_rest(void)
{
	nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
}

/* Is it worth trying again, because a thread will have moved on? */
static bool passes(const struct dp_error *err)
{
	return err && (err->tag == DP_TAG_TRAP_UNSAFE || err->tag == DP_TAG_NO_THREAD);
}

/* If threads cannot be stopped together in time, that must not refuse probes which can do without the handler. */
static struct dp_error *unsafe_too(struct dp_error *err)
{
	if (!err || (err->tag != DP_TAG_UNSTOPPABLE && err->tag != DP_TAG_VFORK))
		return err;
	struct dp_error *more = dp_error(DP_TAG_TRAP_UNSAFE, "%s", err->message);
	dp_error_destroy(err);
	return more;
}

static struct dp_error *arm_often(struct dp_target *t, int most)
{
	for (int tried = 0;; tried++) {
		struct dp_error *err = arm_once(t);
		if (!passes(err) || tried >= most)
			return err;
		dp_error_destroy(err);
		dp_trap_rest();
	}
}

/* Probes that can do without the handler must not hold the program for seconds: it is tried again later. */
struct dp_error *dp_trap_arm(struct dp_target *t, bool patiently)
{
	if (patiently)
		return arm_often(t, ARM_TRIES);
	const uint64_t most_ns = t->patience.most_ns;
	t->patience.most_ns = OPTIONAL_NS;
	struct dp_error *err = arm_often(t, ARM_TRIES / 8);
	t->patience.most_ns = most_ns;
	return unsafe_too(err);
}

/* ---- installing the handler later ------------------------------------------------------------------------------------------ */

void dp_target_faults_later(struct dp_target *t)
{
	t->trap.later = true;
}

void dp_trap_wait(struct dp_target *t, const struct dp_error *why, bool hooked)
{
	t->trap.waits = hooked && t->trap.faults;
	if (why)
		snprintf(t->trap.why, sizeof(t->trap.why), "%s", why->message);
}

const char *dp_target_faults_why(const struct dp_target *t)
{
	return t->trap.faults && t->trap.why[0] ? t->trap.why : NULL;
}

bool dp_target_faults_wait(const struct dp_target *t)
{
	return t->trap.waits;
}

/* While it sleeps in the same place, holding all threads again would fail again. */
static bool sleeps_there(const struct dp_target *t)
{
	struct dp_asleep a;
	return t->trap.in_way && dp_asleep_take(t->process.pid, t->trap.in_way, &a) && a.pc == t->trap.in_way_pc &&
	       a.sp == t->trap.in_way_sp;
}

/* Another tool may have removed one. */
static bool hooks_stand(const struct dp_target *t)
{
	for (size_t i = 0; i < t->in.nplaced; i++)
		if (t->in.placed[i].probe == DP_NO_PROBE && !dp_placed_stands(&t->in.placed[i]))
			return false;
	return true;
}

/* From now on a removal takes the probes out before the handler. Harmless if the handler is not installed after all. */
static void guard_all(struct dp_installation *in)
{
	for (size_t i = 0; i < in->nplaced; i++) {
		struct dp_placed *p = &in->placed[i];
		if (p->probe == DP_NO_PROBE || !p->written)
			continue;
		p->guarded = true;
		p->entry->flags |= DP_SITE_GUARDED;
	}
}

static struct dp_error *arm_briefly(struct dp_target *t, uint64_t *held_ns)
{
	struct dp_freeze f = {0};
	guard_all(&t->in); /* before threads are held: there may be thousands of sites */
	struct dp_error *err = dp_freeze_all(&t->process, DP_FREEZE_LIMIT_NS, &f);
	if (!err) {
		err = take_over_held(t, &f);
		dp_thaw_all(&f);
	}
	*held_ns = f.end_ns - f.begin_ns;
	return unsafe_too(err);
}

struct dp_error *dp_target_faults_retry(struct dp_target *t, uint64_t *held_ns)
{
	struct dp_priority priority;
	*held_ns = 0;
	if (!t->trap.waits || sleeps_there(t) || dp_target_is_crowded(t))
		return NULL;
	if (!hooks_stand(t)) {
		t->trap.waits = false;
		return unsafe(t, "has a system call hook that another tool has changed");
	}
	dp_priority_raise(&priority);
	struct dp_error *err = arm_briefly(t, held_ns);
	dp_priority_restore(&priority);
	t->trap.waits = passes(err);
	if (!err)
		t->trap.why[0] = 0;
	return passes(err) ? dp_error_destroy(err) : err;
}
