/* SPDX-License-Identifier: MIT */
#include "injector/trap.h"

#include "injector/shared.h"
#include "injector/standing.h"

#include "base/cleanup.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ARM_TRIES     200
#define DISARM_TRIES  60
#define REST_NS       3000000L
#define SA_SIGINFO_   UINT64_C(4)
#define SA_RESTORER   UINT64_C(0x04000000)
#define GO_BUILD_INFO "\xff Go buildinf:"

/* ---- can it be done at all? ---------------------------------------------------------------------------------------------------
 */

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

struct dp_error *dp_target_trap_check(struct dp_target *t)
{
	if (t->process.seccomp || t->process.seccomp_strict)
		return unsafe(t, "runs under a seccomp filter, which may forbid what a hook does");
	if (dp_trap_status(&t->process, t->process.alive, "SigIgn") & DP_TRAP_BIT)
		return unsafe(t, "ignores SIGTRAP, and would pass that on to what it executes");
	if (t->sink)
		return unsafe(
		        t,
		        "has probes that emit through LTTng, whose hits block all signals for a while; traps need --sink ring");
	for (size_t i = 0; i < t->nstanding; i++) {
		if (t->standing[i]->in.trap)
			return unsafe(t, "already holds probes of an earlier dynprobe with traps; remove those first");
		if (t->standing[i]->in.sink)
			return unsafe(t, "holds probes of an earlier dynprobe that emit through LTTng, whose hits block all "
			                 "signals for a while");
	}
	return is_go(t) ? unsafe(t, "is a Go program: its stacks are too small for hooks on system calls") : NULL;
}

/* ---- room --------------------------------------------------------------------------------------------------------------------
 */

struct dp_error *dp_target_trap_room(struct dp_target *t, const struct dp_hook_place *hook, size_t nhooks)
{
	if (nhooks > DP_HOOKS_MAX)
		return unsafe(t, "makes system calls at more places than can be watched");
	struct dp_hook_place *copy = malloc((nhooks + 1) * sizeof(*copy));
	if (!copy)
		return dp_error(DP_TAG_NOMEM, "out of memory for the hooks");
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

void dp_target_faults_want(struct dp_target *t, bool on)
{
	t->trap.faults = on;
}

bool dp_target_faults_ready(const struct dp_target *t)
{
	return t->trap.faults && t->trap.wanted;
}

uint64_t dp_trap_region_size(const struct dp_target *t)
{
	return t->trap.wanted ? dp_page_up(sizeof(struct dp_trap) + t->nprobes * sizeof(struct dp_trap_site)) : 0;
}

bool dp_trap_planned(const struct dp_plan *plans, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (plans[i].tactic == DP_TACTIC_TRAP)
			return true;
	return false;
}

static int by_address(const void *a, const void *b)
{
	const struct dp_trap_site *p = a, *q = b;
	return p->addr < q->addr ? -1 : p->addr > q->addr;
}

struct dp_error *dp_trap_fill(struct dp_target *t, const struct dp_plan *plans, size_t n)
{
	const struct dp_region *region = &t->in.region[DP_REGION_TRAP], *text = &t->in.region[DP_REGION_TEXT];
	if (!region->size)
		return NULL;
	dp_auto_free struct dp_trap *trap = calloc(1, region->size);
	struct dp_agent_image agent;
	if (!trap)
		return dp_error(DP_TAG_NOMEM, "out of memory for the table of traps");
	DP_TRY(dp_agent_image_load(&agent));
	for (size_t i = 0; i < n && trap->nsites < t->nprobes; i++)
		if (plans[i].tactic == DP_TACTIC_TRAP)
			trap->site[trap->nsites++] = (struct dp_trap_site){plans[i].site, plans[i].entry};
	qsort(trap->site, trap->nsites, sizeof(*trap->site), by_address);
	trap->agent = t->in.private.addr;
	trap->pid = (uint32_t)(t->process.ns_pid ? t->process.ns_pid : t->process.pid);
	trap->text = text->addr;
	trap->text_size = text->size;
	trap->called = text->addr + agent.trap_called;
	DP_TRY(dp_shared_write(t, region, trap, sizeof(*trap) + trap->nsites * sizeof(*trap->site)));
	const struct dp_region word = {.offset = text->offset + agent.trap_state};
	t->in.trap = region->addr;
	return dp_shared_write(t, &word, &region->addr, sizeof(region->addr));
}

/* ---- in
 * ------------------------------------------------------------------------------------------------------------------------ */

static struct dp_error *put(struct dp_target *t, uint64_t at, const void *value, size_t n)
{
	return dp_mem_write(&t->process, dp_addr_of(at), value, n);
}

#define PUT(t, trap, field, value) put(t, (trap) + offsetof(struct dp_trap, field), value, sizeof(*(value)))

/* What the program had becomes what it sees, and then the handler goes in. */
static struct dp_error *take_over(struct dp_target *t, struct dp_borrow *b)
{
	const struct dp_trap_action ours = {t->trap.handler, SA_SIGINFO_ | SA_RESTORER, t->trap.restorer, UINT64_MAX};
	struct dp_trap_action own;
	uint64_t masks;
	DP_TRY(dp_trap_action(t, b, t->in.trap, DP_TRAP_SIGNAL, NULL, &own));
	if (own.handler == 1)
		return unsafe(t, "ignores SIGTRAP, and would pass that on to what it executes");
	DP_TRY(PUT(t, t->in.trap, action, &own));
	DP_TRY(dp_trap_strip(t, b, t->in.trap, &masks));
	struct dp_error *err = PUT(t, t->in.trap, masks, &masks);
	if (!err)
		err = dp_trap_action(t, b, t->in.trap, DP_TRAP_SIGNAL, &ours, NULL);
	if (err)
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

static struct dp_error *check_threads(struct dp_target *t, const struct dp_freeze *f)
{
	for (size_t i = 0; i < f->n; i++) {
		const char *why = f->thread[i].exited ? NULL : dp_trap_in_the_way(t, &f->thread[i]);
		if (why)
			return dp_error(DP_TAG_TRAP_UNSAFE, "thread %d of process %d (%s) %s", f->thread[i].tid, t->process.pid,
			                t->process.comm, why);
	}
	return NULL;
}

/* The hooks count from the first change on: what is noted for a thread is then told to it, and whoever comes later undoes it. */
static struct dp_error *take_over_held(struct dp_target *t, struct dp_freeze *f)
{
	const uint32_t armed = 1, idle = 0;
	DP_TRY(dp_still_ours(t));
	DP_TRY(check_threads(t, f));
	DP_TRY(PUT(t, t->in.trap, armed, &armed));
	struct dp_error *err = NULL;
	for (size_t i = 0; !err && i < f->n; i++)
		err = dp_trap_unblock(t, &f->thread[i]);
	if (!err)
		err = borrow_and_take_over(t, f);
	if (!err)
		return NULL;
	for (size_t i = 0; i < f->n; i++)
		dp_trap_block(t, t->in.trap, &f->thread[i]);
	dp_error_destroy(PUT(t, t->in.trap, armed, &idle));
	return err;
}

static struct dp_error *arm_once(struct dp_target *t, dp_trap_write write, void *data)
{
	struct dp_freeze own = {0}, *f = t->launch ? dp_launch_freeze(t->launch) : &own;
	if (!t->launch)
		DP_TRY(dp_freeze_patiently(t, &own));
	struct dp_error *err = take_over_held(t, f);
	if (!err)
		write(data, f);
	if (!t->launch)
		dp_thaw_all(&own);
	return err;
}

static void rest(void)
{
	nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
}

struct dp_error *dp_trap_arm(struct dp_target *t, dp_trap_write write, void *data)
{
	for (int tried = 0;; tried++) {
		struct dp_error *err = arm_once(t, write, data);
		const bool passes = err && (err->tag == DP_TAG_TRAP_UNSAFE || err->tag == DP_TAG_NO_THREAD);
		if (!passes || tried >= ARM_TRIES)
			return err;
		dp_error_destroy(err); /* a moment later a thread stands elsewhere */
		rest();
	}
}

/* ---- out
 * ----------------------------------------------------------------------------------------------------------------------- */

struct disarm {
	struct dp_target *t;
	struct dp_installation *in;
	struct dp_trap *trap; /* as it is in the target, with its sites */
	char *why;
	bool exactly; /* there is time to wait for what is seldom */
};

static bool is_trap(const struct dp_placed *p)
{
	return p->written && p->len == 1 && p->new_bytes[0] == 0xcc && p->old_bytes[0] != 0xcc;
}

/*
 * Where the int3 still stands and is ours. *gone: none is left, whoever's it is: one that would meet the program without our
 * handler would end it.
 */
static struct dp_error *restore_bytes(const struct disarm *d, pid_t held, bool *gone)
{
	*gone = true;
	for (size_t i = 0; i < d->in->nplaced; i++) {
		const struct dp_placed *p = &d->in->placed[i];
		uint8_t now = 0;
		if (!is_trap(p) || dp_mem_read(&d->t->process, dp_addr_of(p->addr), &now, 1) != 1 || now != 0xcc)
			continue;
		if (p->state == DP_SITE_PLANNED) {
			DP_TRY(dp_mem_write_text(&d->t->process, held, dp_addr_of(p->addr), p->old_bytes, 1, NULL));
			continue;
		}
		*gone = false;
		snprintf(d->why, 128, "a breakpoint stands at 0x%llx, where a trap was", (unsigned long long)p->addr);
	}
	return NULL;
}

static struct dp_error *give_back(const struct disarm *d, struct dp_freeze *f)
{
	const uint32_t idle = 0;
	struct dp_borrow *b = NULL;
	struct dp_target *t = d->t;
	DP_TRY(dp_borrow_held(t, f, &b));
	struct dp_trap_action now;
	struct dp_error *err = dp_trap_action(t, b, d->in->trap, DP_TRAP_SIGNAL, NULL, &now);
	/* A tool that died early had not yet noted what the program's is. */
	if (!err && now.handler - d->trap->text < d->trap->text_size)
		err = dp_trap_action(t, b, d->in->trap, DP_TRAP_SIGNAL, &d->trap->action, NULL);
	if (!err)
		err = dp_trap_unstrip(t, b, d->in->trap, d->trap->masks);
	if (!err)
		err = PUT(t, d->in->trap, armed, &idle);
	struct dp_error *end = dp_borrow_end(b, NULL);
	if (err) {
		dp_error_destroy(end);
		return err;
	}
	for (size_t i = 0; i < f->n; i++)
		dp_trap_block(t, d->in->trap, &f->thread[i]);
	return end;
}

static bool all_clear(const struct disarm *d, struct dp_freeze *f)
{
	for (size_t i = 0; i < f->n; i++) {
		struct dp_held *h = &f->thread[i];
		if (h->exited)
			continue;
		dp_trap_rewind(h, d->trap->site, d->trap->nsites);
		if (dp_trap_clear(d->t, d->trap, h, d->exactly))
			continue;
		snprintf(d->why, 128, "thread %d is on its way through a trap or a hook", h->tid);
		return false;
	}
	return true;
}

/* The table as it is now: hooks change it until all threads are held. */
static struct dp_error *read_table(const struct disarm *d, uint64_t size)
{
	const uint64_t most = (size - sizeof(*d->trap)) / sizeof(*d->trap->site);
	if (dp_mem_read(&d->t->process, dp_addr_of(d->in->trap), d->trap, size) != size)
		return dp_error(DP_TAG_GONE, "process %d (%s) ended", d->t->process.pid, d->t->process.comm);
	if (d->trap->nsites > most)
		return dp_error(DP_TAG_DAMAGED, "the table of traps in process %d makes no sense", d->t->process.pid);
	return NULL;
}

static struct dp_error *disarm_once(const struct disarm *d, uint64_t size, bool *done)
{
	struct dp_freeze f = {0};
	bool gone = false;
	DP_TRY(dp_freeze_patiently(d->t, &f));
	struct dp_error *err = dp_still_holds(d->t, d->in);
	if (!err)
		err = read_table(d, size);
	if (!err)
		err = restore_bytes(d, f.thread[0].tid, &gone);
	*done = !err && gone && !d->trap->armed;
	if (!err && gone && !*done && all_clear(d, &f)) {
		err = give_back(d, &f);
		*done = !err;
	}
	dp_thaw_all(&f);
	return err;
}

/* The region's size, from the mappings that were found. */
static uint64_t size_of(const struct dp_installation *in)
{
	for (size_t i = 0; i < in->nregions; i++)
		if (in->region[i].addr == in->trap && in->region[i].size >= sizeof(struct dp_trap))
			return in->region[i].size;
	return 0;
}

struct dp_error *dp_trap_disarm(struct dp_target *t, struct dp_installation *in, char why[128], bool *done)
{
	const uint64_t size = in->trap ? size_of(in) : 0;
	*done = true;
	if (!size)
		return NULL;
	dp_auto_free struct dp_trap *trap = malloc(size);
	struct disarm d = {t, in, trap, why, true};
	if (!trap)
		return dp_error(DP_TAG_NOMEM, "out of memory for the table of traps");
	for (int tried = 0; tried < DISARM_TRIES; tried++) {
		d.exactly = tried < DISARM_TRIES / 2;
		struct dp_error *err = disarm_once(&d, size, done);
		if (err && err->tag != DP_TAG_NO_THREAD)
			return err;
		dp_error_destroy(err);
		if (*done)
			return NULL;
		rest();
	}
	return NULL;
}
