/* SPDX-License-Identifier: MIT */
/*
 * The order in which bytes are restored, and whether threads run meanwhile. Nearly all are restored live, by page replacement
 * (swap.h); those in text that cannot be replaced with all threads held, in as few batches as their number allows.
 *
 * Later sites may rely on what earlier ones have written, so the order is the reverse of writing. A site whose bytes another one
 * relies on or covers stays as long as that one stays: its probe is disabled, and it is removed with the last of those.
 */
#include "injector/patch/embedded.h"
#include "injector/patch/restore_pass.h"

#include "base/cleanup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOLD_NS    UINT64_C(2000000) /* for writing; stopping all threads is not included */
#define LIVE_TRIES 3

static bool is_meant(const struct restore *r, size_t i)
{
	const struct dp_placed *p = &r->in->placed[i];
	if (!p->written || p->state == DP_SITE_RESTORED || (r->kept && r->kept[i]))
		return false;
	return !r->chosen || r->chosen[i] || p->state == DP_SITE_WAITING;
}

static void take_outcome(struct restore *r, size_t i, enum outcome outcome)
{
	struct dp_placed *p = &r->in->placed[i];
	if (outcome == RESTORED) {
		dp_placed_mark(r->t, p, DP_SITE_RESTORED);
		return;
	}
	p->changed = true;
	r->report->left_sites++;
	snprintf(r->report->why, sizeof(r->report->why), "another tool changed the bytes at 0x%llx", (unsigned long long)p->addr);
}

static void say_why(struct restore *r, const char *why)
{
	r->report->live = false;
	if (r->report->why_frozen[0])
		return;
	snprintf(r->report->why_frozen, sizeof(r->report->why_frozen), "%.*s", (int)sizeof(r->report->why_frozen) - 1, why);
	dp_target_log(r->t, "all threads are held: %s", why);
}

/* ---- live ------------------------------------------------------------------------------------------------------------------ */

/* So far the pages were only read: states are recorded after the commit. */
static void edit_all(struct restore *r)
{
	for (size_t i = r->in->nplaced; i-- > 0;) {
		struct pending *d = &r->done[i];
		if (!is_meant(r, i) || d->settled || d->held)
			continue;
		*d = (struct pending){0};
		d->waits = r->chosen && dp_restore_in_use(r, i, false);
		d->held = !d->waits && dp_restore_in_use(r, i, true);
		if (d->waits || d->held)
			continue;
		d->outcome = dp_restore_site(r, i);
		d->held = d->outcome == IMPOSSIBLE;
		d->goes = !d->held;
		if (d->held)
			say_why(r, dp_replace_why(r->swap));
	}
}

/* After the commit: records the edited sites that are in place. The others are retried, or, the `last` time, wait for a hold. */
static void settle(struct restore *r, bool last)
{
	for (size_t i = r->in->nplaced; i-- > 0;) {
		struct pending *d = &r->done[i];
		if (d->waits)
			dp_placed_mark(r->t, &r->in->placed[i], DP_SITE_WAITING);
		if (!d->goes || d->settled)
			continue;
		d->goes = !d->edited || dp_replace_stands(r->swap, r->in->placed[i].addr);
		d->held = !d->goes && last;
		d->settled = d->goes;
		if (!d->settled)
			continue;
		if (d->below)
			d->below->covered = d->covered;
		take_outcome(r, i, d->outcome);
	}
}

/* Holding the threads is pointless or impossible then. */
static bool is_final(const struct dp_error *err)
{
	return err->tag == DP_TAG_GONE || err->tag == DP_TAG_NO_PROCESS || err->tag == DP_TAG_ZOMBIE || err->tag == DP_TAG_NOMEM;
}

/* Worth a retry: for example, a thread had no processor in time, or another process wrote to the page. */
static bool passes(const struct dp_error *err, const struct dp_replace *s)
{
	return err && (err->tag == DP_TAG_REMOTE || err->tag == DP_TAG_CHANGED) && !s->unheld;
}

static struct dp_error *commit(struct restore *r, bool *again)
{
	struct dp_replace *s = r->swap;
	s->whole = !r->chosen;
	DP_TRY(dp_stopped_holds(r->t, r->in));
	edit_all(r);
	struct dp_error *err = dp_replace_commit(s, NULL, &r->report->pause_ns);
	*again &= passes(err, s);
	settle(r, !*again);
	if (s->holds)
		say_why(r, s->why_held);
	if (!err || is_final(err))
		return err;
	if (*again)
		dp_target_log(r->t, "retrying: %s", err->message);
	else
		say_why(r, err->message);
	return dp_error_destroy(err);
}

static struct dp_error *restore_live(struct restore *r)
{
	struct dp_error *err = NULL;
	bool again = true;
	for (int tried = 1; !err && again; tried++) {
		again = tried < LIVE_TRIES;
		err = dp_replace_create(r->t, r->in, &r->swap);
		if (!err)
			err = commit(r, &again);
		r->swap = dp_replace_destroy(r->swap);
	}
	return err;
}

/* ---- with all threads held ------------------------------------------------------------------------------------------------- */

static void restore_one(struct restore *r, size_t i)
{
	struct pending *d = &r->done[i];
	d->held = false;
	d->waits = r->chosen && dp_restore_in_use(r, i, false);
	if (d->waits) {
		dp_placed_mark(r->t, &r->in->placed[i], DP_SITE_WAITING);
		return;
	}
	d->goes = true;
	take_outcome(r, i, dp_restore_site(r, i));
}

/* Goes down to the next site that waits; 0: there is none. */
static size_t next_held(const struct restore *r, size_t next)
{
	while (next > 0 && !r->done[next - 1].held)
		next--;
	return next;
}

/* As many as time allows. One that crosses pages is done alone, because its new pages were prepared before. */
static void restore_some(struct restore *r, size_t *next)
{
	const uint64_t until = dp_now_ns() + HOLD_NS;
	do {
		restore_one(r, *next - 1);
		*next = next_held(r, *next - 1);
	} while (*next && !r->across && !dp_restore_crosses(r, *next - 1) && dp_now_ns() < until);
}

static struct dp_error *hold_and_restore(struct restore *r, size_t *next, uint64_t *held_ns)
{
	struct dp_freeze f = {0};
	DP_TRY(dp_freeze_with_retry(r->t, &f));
	struct dp_error *err = dp_stopped_holds(r->t, r->in);
	r->f = &f;
	if (!err)
		restore_some(r, next);
	r->f = NULL;
	dp_thaw_all(&f);
	*held_ns = f.end_ns - f.begin_ns;
	if (*held_ns > r->report->pause_ns)
		r->report->pause_ns = *held_ns;
	return err;
}

static struct dp_error *restore_turn(struct restore *r, size_t *next, uint64_t *held_ns)
{
	struct dp_priority priority;
	struct dp_error *err = dp_restore_crosses(r, *next - 1) ? dp_replace_create(r->t, r->in, &r->across) : NULL;
	dp_priority_raise(&priority);
	if (!err)
		err = hold_and_restore(r, next, held_ns);
	dp_priority_restore(&priority);
	r->across = dp_replace_destroy(r->across);
	return err;
}

static struct dp_error *restore_turns(struct restore *r)
{
	size_t next = next_held(r, r->in->nplaced);
	while (next) {
		DP_TRY(dp_target_progress(r->t, r->in->nplaced - next, r->in->nplaced));
		uint64_t held_ns = 0;
		DP_TRY(restore_turn(r, &next, &held_ns));
		if (next)
			dp_freeze_retry_rest(held_ns);
	}
	return NULL;
}

/* ---- one pass -------------------------------------------------------------------------------------------------------------- */

/* Finds sites written by a call that we gave up waiting for. No other bytes lead to our stubs. */
static void find_late(struct restore *r)
{
	for (size_t i = 0; i < r->in->nplaced; i++) {
		struct dp_placed *p = &r->in->placed[i];
		uint8_t now[sizeof(p->new_bytes)];
		if (!p->written && p->state == DP_SITE_PLANNED &&
		    dp_mem_read(&r->t->process, dp_addr_of(p->addr), now, p->len) == p->len && !memcmp(now, p->new_bytes, p->len))
			p->written = true;
	}
}

static void hold_all(struct restore *r)
{
	for (size_t i = 0; i < r->in->nplaced; i++)
		r->done[i].held = is_meant(r, i);
}

static struct dp_error *restore_meant(struct restore *r)
{
	struct dp_error *err = NULL;
	if (!r->f && !r->t->launch && !r->t->process.seccomp)
		err = restore_live(r);
	else
		hold_all(r);
	if (err)
		return err;
	if (!r->f)
		return restore_turns(r);
	for (size_t i = r->in->nplaced; i-- > 0;)
		if (r->done[i].held)
			restore_one(r, i);
	return NULL;
}

static struct dp_error *pass(struct restore r)
{
	r.report->left_sites = 0;
	r.report->occupied = false;
	find_late(&r);
	r.done = calloc(r.in->nplaced + 1, sizeof(*r.done));
	struct dp_error *err = r.done ? restore_meant(&r) : dp_error_nomem();
	dp_image_destroy(r.seen);
	free(r.done);
	return err;
}

/* ---- jumps embedded in other sites' bytes ---------------------------------------------------------------------------------- */

/* The chosen sites without embedded jumps. Owned by the caller; NULL: no memory. */
static bool *all_but_hosts(const struct restore *r, const struct dp_embedded *hidden)
{
	bool *chosen = calloc(r->in->nplaced + 1, sizeof(*chosen));
	for (size_t i = 0; chosen && i < r->in->nplaced; i++)
		chosen[i] = (!r->chosen || r->chosen[i]) && !hidden->host[i];
	return chosen;
}

/* The hosts of embedded jumps wait for a later attempt, or the next removal. */
static void keep_hosts(struct restore *r, const struct dp_embedded *hidden)
{
	r->report->occupied = true;
	for (size_t i = 0; i < r->in->nplaced; i++)
		if (hidden->host[i] && r->in->placed[i].state == DP_SITE_PLANNED)
			dp_placed_mark(r->t, &r->in->placed[i], DP_SITE_WAITING);
}

/* First restores the jumps that lead to embedded ones; waits until no thread is between the two; then restores the rest. */
static struct dp_error *in_two_steps(struct restore *r, const struct dp_embedded *hidden)
{
	bool left = false;
	dp_auto_free bool *chosen = all_but_hosts(r, hidden);
	if (!chosen)
		return dp_error_nomem();
	struct restore first = *r;
	first.chosen = chosen;
	first.kept = hidden->host; /* also one that an earlier attempt left waiting */
	DP_TRY(pass(first));
	if (r->report->left_sites) /* one of them may still lead there */
		return keep_hosts(r, hidden), NULL;
	if (r->f)
		left = dp_embedded_leave(r->t, hidden, r->f, r->report->why);
	else
		DP_TRY(dp_embedded_leave_live(r->t, hidden, r->report, &left));
	if (!left)
		return keep_hosts(r, hidden), NULL;
	return pass(*r);
}

static struct dp_error *restore(struct restore *r)
{
	struct dp_embedded hidden;
	DP_TRY(dp_embedded_find(r->in, r->chosen, &hidden));
	struct dp_error *err = hidden.n ? in_two_steps(r, &hidden) : pass(*r);
	dp_embedded_fini(&hidden);
	return err;
}

struct dp_error *dp_restore_held(struct dp_target *t, struct dp_installation *in, const bool *chosen, struct dp_freeze *f,
                                 struct dp_remove_report *report)
{
	struct restore r = {.t = t, .in = in, .chosen = chosen, .f = f, .report = report};
	return restore(&r);
}

struct dp_error *dp_restore(struct dp_target *t, struct dp_installation *in, const bool *chosen, struct dp_remove_report *report)
{
	struct restore r = {.t = t, .in = in, .chosen = chosen, .report = report};
	return restore(&r);
}
