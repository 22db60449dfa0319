/* SPDX-License-Identifier: MIT */
/*
 * The order in which sites are written, and whether threads run meanwhile. Nearly all sites are written live, by page replacement
 * (swap.h). The others wait: because of their kind (windows, traps), because of their place (text that cannot be replaced, a
 * seccomp filter), or because they rely on bytes of one that waits. They are written with all threads held, in several short
 * holds, so that many sites do not make a hold longer.
 *
 * If the tool dies in between, the threads run on with some sites patched and some not. The order guarantees that each site comes
 * after those that it relies on, and each patched site leads to a finished stub.
 */
#include "injector/patch/quiesce/code_index.h"
#include "injector/patch/install.h"
#include "injector/trap/trap.h"

#include "base/cleanup.h"

#include <stdlib.h>

#define HOLD_NS    UINT64_C(2000000) /* for writing; stopping all threads and scanning their stacks is not included */
#define LIVE_TRIES 3

/* ---- live ------------------------------------------------------------------------------------------------------------------ */

static bool relies_on_held(const struct install *i, size_t k)
{
	const struct dp_plan *plan = &i->plans[k];
	for (size_t n = 0; n < plan->nsupports; n++) {
		struct dp_near near = dp_near(&i->t->in, plan->support[n], plan->support[n] + 1);
		for (size_t j; (j = dp_near_next(&near)) != SIZE_MAX;)
			if (j != k && i->held[j])
				return true;
	}
	return false;
}

/* NULL if it may be written while threads run. */
static const char *needs_hold(const struct install *i, size_t k)
{
	if (i->plans[k].ninterior)
		return "a window must be checked with all threads held";
	if (i->plans[k].tactic == DP_TACTIC_TRAP)
		return "a thread may be about to restart a system call where a trap is written";
	return relies_on_held(i, k) ? "it relies on bytes that are written with all threads held" : NULL;
}

static void hold(struct install *i, size_t k, const char *why)
{
	i->held[k] = true;
	dp_install_log_why(i, why);
}

static void edit_all(struct install *i, bool guarded, struct dp_placed **below)
{
	for (size_t k = 0; k < i->nplans; k++) {
		const char *why = dp_install_is_due(i, k, guarded) ? needs_hold(i, k) : NULL;
		if (why)
			hold(i, k, why);
		else if (dp_install_is_due(i, k, guarded) && !dp_install_write_live(i, k, &below[k]))
			hold(i, k, dp_replace_why(i->swap));
	}
}

/* `last`: sites that are neither refused nor written must wait for a hold. */
static void settle(struct install *i, bool guarded, struct dp_placed **below, bool last)
{
	for (size_t k = 0; k < i->nplans; k++) {
		if (!dp_install_is_due(i, k, guarded) || i->held[k])
			continue;
		if (dp_replace_stands(i->swap, i->t->in.placed[k].addr))
			dp_install_stands(i, k, below[k]);
		else
			i->held[k] = last;
	}
}

/* True if the rest may be written with all threads held. */
static bool may_be_held(const struct dp_error *err)
{
	switch (err->tag) {
	case DP_TAG_NO_THREAD:
	case DP_TAG_UNSTOPPABLE:
	case DP_TAG_VFORK:
	case DP_TAG_CHANGED:
	case DP_TAG_REMOTE:
	case DP_TAG_NO_SPACE:
	case DP_TAG_SYS:
		return true;
	default:
		return false;
	}
}

/* Worth a retry: for example, a thread had no processor in time, or another process wrote to the page. */
static bool passes(const struct dp_error *err, const struct dp_replace *s)
{
	return err && (err->tag == DP_TAG_REMOTE || err->tag == DP_TAG_CHANGED) && !s->unheld;
}

static struct dp_error *commit(struct install *i, bool guarded, struct dp_placed **below, bool *again)
{
	struct dp_replace *s = i->swap;
	edit_all(i, guarded, below);
	struct dp_error *err = dp_replace_commit(s, NULL, &i->stats->pause_ns);
	*again &= passes(err, s);
	settle(i, guarded, below, !*again);
	i->stats->freezes += s->holds;
	if (s->holds)
		dp_install_log_why(i, s->why_held);
	if (!err || !may_be_held(err))
		return err;
	if (*again)
		dp_target_log(i->t, "retrying: %s", err->message);
	else
		dp_install_log_why(i, err->message);
	return dp_error_destroy(err);
}

static struct dp_error *write_live(struct install *i, bool guarded)
{
	struct dp_error *err = NULL;
	bool again = true;
	dp_auto_free struct dp_placed **below = calloc(i->nplans + 1, sizeof(struct dp_placed *));
	if (!below)
		return dp_error_nomem();
	for (int tried = 1; !err && again; tried++) {
		again = tried < LIVE_TRIES;
		err = dp_replace_create(i->t, &i->t->in, &i->swap);
		if (!err)
			err = commit(i, guarded, below, &again);
		i->swap = dp_replace_destroy(i->swap);
	}
	return err;
}

/* ---- with all threads held ------------------------------------------------------------------------------------------------- */

struct turn { /* what is written in one hold */
	size_t from, end;
	bool guarded;
	struct dp_replace *across; /* for a single site that crosses pages */
	uint64_t held_ns;
};

static bool is_due(const struct install *i, size_t k, bool guarded)
{
	return i->held[k] && dp_install_is_due(i, k, guarded);
}

static size_t next_due(const struct install *i, size_t k, bool guarded)
{
	while (k < i->nplans && !is_due(i, k, guarded))
		k++;
	return k;
}

/* Takes the next sites of one kind: windows, which need a scan of all stacks; or others; or a single one that crosses pages. */
static void take_turn(const struct install *i, struct turn *turn)
{
	turn->from = turn->end = next_due(i, turn->from, turn->guarded);
	if (turn->from == i->nplans)
		return;
	const bool windows = i->plans[turn->from].ninterior > 0, across = dp_install_crosses(i, turn->from);
	do
		turn->end = next_due(i, turn->end + 1, turn->guarded);
	while (!across && turn->end < i->nplans && !dp_install_crosses(i, turn->end) &&
	       windows == (i->plans[turn->end].ninterior > 0));
}

/* Does everything slow before threads are held. */
static struct dp_error *prepare(struct install *i, struct turn *turn)
{
	turn->across = NULL;
	if (dp_install_crosses(i, turn->from))
		DP_TRY(dp_replace_create(i->t, &i->t->in, &turn->across));
	return dp_install_inspection_create(i, turn->from, turn->end, &i->look);
}

static void write_turn(struct install *i, struct turn *turn, struct dp_freeze *f)
{
	dp_install_inspection_take(i->look, i, f);
	const uint64_t until = dp_now_ns() + HOLD_NS;
	do {
		if (is_due(i, turn->from, turn->guarded))
			dp_install_write_held(i, turn->from, f, turn->across);
	} while (++turn->from < turn->end && (dp_now_ns() < until || i->t->launch));
	for (size_t n = 0; i->t->in.trap && n < f->n; n++)
		dp_trap_restart(i->t, &f->thread[n]);
}

/* If sites were not written live, the threads' identities have not been checked since they were chosen. */
static struct dp_error *check_threads(const struct install *i, const struct dp_freeze *f, bool first)
{
	const struct dp_target *t = i->t;
	DP_TRY(dp_stopped_ours(i->t));
	if (!first || dp_identity_holds(t, f, t->runtime.identity, t->runtime.tid_offset))
		return NULL;
	return dp_error(DP_TAG_CHANGED, "the target's threads changed their control blocks during the attach; try again");
}

static struct dp_error *hold_and_write(struct install *i, struct turn *turn, bool first)
{
	struct dp_freeze own = {0}, *f = i->t->launch ? dp_launch_freeze(i->t->launch) : &own;
	struct dp_priority priority;
	dp_priority_raise(&priority);
	struct dp_error *err = i->t->launch ? NULL : dp_freeze_with_retry(i->t, &own);
	if (!err) {
		err = check_threads(i, f, first);
		if (!err)
			write_turn(i, turn, f);
		i->stats->threads = (unsigned)f->n;
	}
	if (own.n) {
		dp_thaw_all(&own);
		turn->held_ns = own.end_ns - own.begin_ns;
		i->stats->freezes++;
		dp_install_note_hold(i, &own, "patching");
	}
	dp_priority_restore(&priority);
	return err;
}

static struct dp_error *write_next(struct install *i, struct turn *turn, bool first)
{
	struct dp_error *err = prepare(i, turn);
	if (!err)
		err = hold_and_write(i, turn, first);
	turn->across = dp_replace_destroy(turn->across);
	i->look = dp_install_inspection_destroy(i->look);
	return err;
}

static bool any_stands(const struct install *i)
{
	for (size_t k = 0; k < i->nplans; k++)
		if (i->t->in.placed[k].written)
			return true;
	return false;
}

static struct dp_error *refuse_rest(struct install *i, bool guarded, struct dp_error *err)
{
	if (!may_be_held(err) || !any_stands(i))
		return err;
	for (size_t k = 0; k < i->nplans; k++)
		if (is_due(i, k, guarded))
			dp_install_refuse(i, k, err->tag, err->message);
	return dp_error_destroy(err);
}

static struct dp_error *write_held(struct install *i, bool guarded)
{
	struct turn turn = {.guarded = guarded};
	bool first = !i->live && !any_stands(i);
	for (take_turn(i, &turn); turn.from < i->nplans; take_turn(i, &turn)) {
		DP_TRY(dp_target_progress(i->t, turn.from, i->nplans));
		struct dp_error *err = write_next(i, &turn, first);
		if (err)
			return refuse_rest(i, guarded, err);
		if (!i->t->launch && turn.from < i->nplans)
			dp_freeze_retry_rest(turn.held_ns);
		first = false;
	}
	return NULL;
}

static struct dp_error *write_all(struct install *i, bool guarded)
{
	if (i->live)
		DP_TRY(write_live(i, guarded));
	else
		for (size_t k = 0; k < i->nplans; k++)
			i->held[k] = true;
	return write_held(i, guarded);
}

/* ---- hooks --------------------------------------------------------------------------------------------------------------- */

static void add_supports(const struct install *i, size_t k, bool *only)
{
	const struct dp_plan *plan = &i->plans[k];
	for (size_t n = 0; n < plan->nsupports; n++) {
		struct dp_near near = dp_near(&i->t->in, plan->support[n], plan->support[n] + 1);
		for (size_t j; (j = dp_near_next(&near)) != SIZE_MAX;)
			only[j] |= j < k;
	}
}

/* In the order of the plans, a site comes after those that it relies on. */
static bool pick_hooks(const struct install *i, bool *only)
{
	bool any = false;
	for (size_t k = i->nplans; k-- > 0;) {
		only[k] |= i->plans[k].probe == DP_NO_PROBE && i->plans[k].calls_out;
		any |= only[k];
		if (only[k])
			add_supports(i, k, only);
	}
	return any;
}

/* First the hooks: a thread that starts between two pages needs the one that prepares it for LTTng before it reaches a probe. */
static struct dp_error *write_hooks(struct install *i)
{
	dp_auto_free bool *only = calloc(i->nplans + 1, sizeof(*only));
	if (!only)
		return dp_error_nomem();
	if (!pick_hooks(i, only))
		return NULL;
	i->only = only;
	struct dp_error *err = write_all(i, false);
	i->only = NULL;
	return err;
}

struct dp_error *dp_install_sites(struct install *i, bool guarded)
{
	if (i->live && i->t->sink && !guarded)
		DP_TRY(write_hooks(i));
	return write_all(i, guarded);
}
