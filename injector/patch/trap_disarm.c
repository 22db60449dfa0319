/* SPDX-License-Identifier: MIT */
/* Removes the guarded sites first. When no thread needs the handler any more, restores the program's own actions and masks. */
#include "injector/patch/quiesce/quiesce.h"
#include "injector/patch/quiesce/quiesce_frames.h"
#include "injector/patch/remove.h"
#include "injector/patch/restore.h"
#include "injector/target/shared.h"
#include "injector/trap/trap.h"

#include "base/cleanup.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>

#define DISARM_TRIES 60
#define FRAMES_AFTER 4

struct disarm {
	struct dp_target *t;
	struct dp_installation *in;
	struct dp_trap *trap; /* as in the target, with its tables */
	const struct dp_fixup *sites;
	struct dp_remove_report *report;
	char *why;
	bool exactly; /* there is time to wait for rare states */
};

static bool is_trap(const struct dp_placed *p)
{
	return p->written && p->len == 1 && p->new_bytes[0] == 0xcc && p->old_bytes[0] != 0xcc;
}

/* Restores in an order that respects dependencies: a jump may rely on the byte of a trap. */
static struct dp_error *restore_guarded(const struct disarm *d)
{
	struct dp_remove_report report = {0};
	dp_auto_free bool *chosen = calloc(d->in->nplaced + 1, sizeof(*chosen));
	bool any = false;
	if (!chosen)
		return dp_error_nomem();
	for (size_t i = 0; i < d->in->nplaced; i++) {
		const struct dp_placed *p = &d->in->placed[i];
		any |= chosen[i] = p->written && (p->guarded || is_trap(p)) && !(is_trap(p) && p->state == DP_SITE_RETIRED);
	}
	struct dp_error *err = any ? dp_restore(d->t, d->in, chosen, &report) : NULL;
	if (report.pause_ns > d->report->pause_ns)
		d->report->pause_ns = report.pause_ns;
	return err;
}

/*
 * Are all jumps to stubs that may fault gone, and all int3s, anyone's? One that is left would kill the program without our
 * handler.
 */
static bool all_gone(const struct disarm *d)
{
	for (size_t i = 0; i < d->in->nplaced; i++) {
		const struct dp_placed *p = &d->in->placed[i];
		uint8_t now = 0;
		const bool stands = p->state == DP_SITE_PLANNED || p->state == DP_SITE_WAITING;
		const bool trap = is_trap(p) && dp_mem_read(&d->t->process, dp_addr_of(p->addr), &now, 1) == 1 && now == 0xcc;
		if (!trap && !(p->written && p->guarded && !is_trap(p) && stands))
			continue;
		snprintf(d->why, 128, "%s at 0x%llx", trap ? "a breakpoint has replaced a trap" : "a probe cannot be removed",
		         (unsigned long long)p->addr);
		return false;
	}
	return true;
}

/* Only actions that are ours: the program may have set others without a hook, and a tool that died early never replaced them. */
static struct dp_error *give_actions(const struct disarm *d, struct dp_borrow *b)
{
	struct dp_trap_action now[DP_TRAP_SIGNALS];
	uint64_t ours = 0;
	DP_TRY(dp_trap_read_actions(d->t, d->in, b, d->trap->signals, now));
	for (unsigned sig = 1; sig < DP_TRAP_SIGNALS; sig++)
		if ((d->trap->signals & DP_TRAP_BIT_OF(sig)) && now[sig - 1].handler - d->trap->text < d->trap->text_size)
			ours |= DP_TRAP_BIT_OF(sig);
	return dp_trap_give_actions(d->in, b, ours);
}

static struct dp_error *give_back(const struct disarm *d, struct dp_freeze *f)
{
	const uint32_t idle = 0;
	struct dp_borrow *b = NULL;
	struct dp_target *t = d->t;
	DP_TRY(dp_borrow_held(t, f, &b));
	struct dp_error *err = give_actions(d, b);
	if (!err)
		err = dp_trap_unstrip(t, b, d->in->trap, d->trap->masks);
	if (!err)
		err = DP_TRAP_PUT(t, d->in->trap, armed, &idle);
	struct dp_error *end = dp_borrow_end(b, NULL);
	if (err) {
		dp_error_destroy(end);
		return err;
	}
	for (size_t i = 0; i < f->n; i++)
		if (dp_trap_noted(d->trap, &f->thread[i]))
			dp_trap_block(t, d->in->trap, &f->thread[i]);
	return end;
}

static bool all_clear(const struct disarm *d, struct dp_freeze *f)
{
	for (size_t i = 0; i < f->n; i++) {
		struct dp_held *h = &f->thread[i];
		if (h->exited)
			continue;
		dp_trap_rewind(h, d->sites, d->trap->nsites);
		if (dp_trap_clear(d->t, d->trap, h, d->exactly))
			continue;
		snprintf(d->why, 128, "thread %d is running a trap or a hook", h->tid);
		return false;
	}
	/* The handler is needed until no thread is in a stub with a load that may fault, or will return there. */
	return !(d->trap->signals & DP_FAULT_BITS) || dp_quiesce(d->t, d->in, f, d->why);
}

/* Reads the head, which hooks change until all threads are held. The rest does not change after it is written. */
static struct dp_error *read_table(struct disarm *d, uint64_t size, uint64_t part)
{
	const uint64_t most = (size - sizeof(*d->trap)) / sizeof(*d->trap->table);
	if (dp_mem_read(&d->t->process, dp_addr_of(d->in->trap), d->trap, part) != part)
		return dp_error(DP_TAG_GONE, "process %d (%s) ended", d->t->process.pid, d->t->process.comm);
	if (d->trap->nsites > most || d->trap->sites != d->in->trap + sizeof(*d->trap))
		return dp_error(DP_TAG_DAMAGED, "the trap table in process %d is damaged", d->t->process.pid);
	d->sites = d->trap->table;
	return NULL;
}

/* No guarded site is left, so no thread enters the handler anew. */
static struct dp_error *disarm_held(struct disarm *d, uint64_t size, bool *done)
{
	struct dp_freeze f = {0};
	DP_TRY(dp_freeze_with_retry(d->t, &f));
	struct dp_error *err = dp_stopped_holds(d->t, d->in);
	if (!err)
		err = read_table(d, size, sizeof(*d->trap));
	*done = !err && !d->trap->armed;
	if (!err && !*done && all_clear(d, &f)) {
		err = give_back(d, &f);
		*done = !err;
	}
	dp_thaw_all(&f);
	if (f.end_ns - f.begin_ns > d->report->pause_ns)
		d->report->pause_ns = f.end_ns - f.begin_ns;
	return err;
}

static struct dp_error *disarm_once(struct disarm *d, uint64_t size, bool *done)
{
	struct dp_priority priority;
	*done = false;
	DP_TRY(dp_stopped_holds(d->t, d->in));
	DP_TRY(read_table(d, size, size));
	DP_TRY(restore_guarded(d));
	if (!all_gone(d))
		return NULL;
	dp_priority_raise(&priority);
	struct dp_error *err = disarm_held(d, size, done);
	dp_priority_restore(&priority);
	return err;
}

/* The region's size, from the mappings. */
static uint64_t size_of(const struct dp_installation *in)
{
	for (size_t i = 0; i < in->nregions; i++)
		if (in->region[i].addr == in->trap && in->region[i].size >= sizeof(struct dp_trap))
			return in->region[i].size;
	return 0;
}

struct dp_error *dp_trap_disarm(struct dp_target *t, struct dp_installation *in, struct dp_remove_report *report, bool *done)
{
	const uint64_t size = in->trap ? size_of(in) : 0;
	*done = true;
	if (!size)
		return NULL;
	dp_auto_free struct dp_trap *trap = malloc(size);
	struct disarm d = {.t = t, .in = in, .trap = trap, .report = report, .why = report->why};
	if (!trap)
		return dp_error_nomem();
	for (int tried = 0; tried < DISARM_TRIES; tried++) {
		if (tried == FRAMES_AFTER)
			dp_frames_need(t, in);
		d.exactly = tried < DISARM_TRIES / 2;
		struct dp_error *err = disarm_once(&d, size, done);
		if (err && err->tag != DP_TAG_NO_THREAD)
			return err;
		dp_error_destroy(err);
		if (*done)
			return NULL;
		dp_trap_rest();
	}
	return NULL;
}
