/* SPDX-License-Identifier: MIT */
/*
 * One transaction (decision 8). First everything is mapped and filled while the target runs; then all threads are held, every
 * site's bytes are compared with the file's, and those that agree are overwritten, each by one write inside one page.
 *
 * If the tool dies between two of these writes, the threads run on with some sites patched and some not: each patched site leads
 * to a finished stub. A site that crosses a page boundary would need two writes, and dying between them would leave half a
 * jump; such sites are refused.
 */
#include "injector/shared.h"
#include "injector/standing.h"
#include "injector/trap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define MAP_TRIES 20

struct install {
	struct dp_target *t;
	const struct dp_extent *extents;
	size_t nextents;
	const struct dp_plan *plans;
	size_t nplans;
	const void *unwind;
	size_t unwind_size;
	struct dp_install_result *results;
	struct dp_install_stats *stats;
};

static struct dp_error *add_extents(struct install *i, uint64_t *file_size)
{
	struct dp_installation *in = &i->t->in;
	struct dp_region *grown = realloc(in->region, (DP_REGION_FIXED + i->nextents) * sizeof(*grown));
	if (!grown)
		return dp_error(DP_TAG_NOMEM, "out of memory for the list of mappings");
	in->region = grown;
	in->region[DP_REGION_TABLES].size = dp_page_up(i->unwind_size);
	for (size_t k = 0; k < i->nextents; k++)
		in->region[DP_REGION_FIXED + k] =
		        (struct dp_region){.addr = i->extents[k].addr, .size = i->extents[k].n, .prot = PROT_READ | PROT_EXEC};
	in->nregions = DP_REGION_FIXED + i->nextents;
	*file_size = 0;
	for (size_t k = 0; k < in->nregions; k++) {
		in->region[k].offset = *file_size;
		*file_size += in->region[k].size;
	}
	return NULL;
}

/* What is put over another probe covers all of its bytes, and gives them all back. */
static void cover(struct dp_target *t, struct dp_placed *p)
{
	const struct dp_placed *below = dp_standing_below(t, &t->in, p);
	if (below && below->len > p->len)
		p->len = p->nchanged = below->len;
}

static struct dp_error *add_placed(struct install *i)
{
	struct dp_installation *in = &i->t->in;
	in->placed = calloc(i->nplans + 1, sizeof(*in->placed));
	if (!in->placed)
		return dp_error(DP_TAG_NOMEM, "out of memory for the list of sites");
	in->nplaced = i->nplans;
	for (size_t k = 0; k < i->nplans; k++) {
		const struct dp_plan *plan = &i->plans[k];
		struct dp_placed *p = &in->placed[k];
		*p = (struct dp_placed){.addr = plan->site,
		                        .probe = plan->probe,
		                        .len = plan->len,
		                        .nchanged = plan->changed,
		                        .stub = plan->stub,
		                        .stub_end = plan->stub_end};
		p->npairs = plan->npairs;
		memcpy(p->pair, plan->pair, sizeof(p->pair));
		memcpy(p->old_bytes, plan->old_bytes, sizeof(p->old_bytes));
		memcpy(p->new_bytes, plan->new_bytes, sizeof(p->new_bytes));
		cover(i->t, p);
		in->calls_out |= p->probe == DP_NO_PROBE;
	}
	in->sink = i->t->sink;
	in->calls_out |= in->sink != 0;
	return NULL;
}

static void note_pause(struct install *i, const struct dp_freeze *f, const char *what)
{
	struct dp_install_stats *stats = i->stats;
	dp_target_say(i->t, "%s: threads held for %llu us", what, (unsigned long long)(f->end_ns - f->begin_ns) / 1000);
	if (f->end_ns - f->begin_ns > stats->pause_ns)
		stats->pause_ns = f->end_ns - f->begin_ns;
}

typedef struct dp_error *(*map_step)(struct dp_target *t, struct dp_borrow *b, uint64_t file_size);

static struct dp_error *map_finish(struct dp_target *t, struct dp_borrow *b, uint64_t file_size)
{
	(void)file_size;
	DP_TRY(dp_still_ours(t));
	return dp_map_finish(t, b);
}

static struct dp_error *map_held(struct install *i, struct dp_freeze *f, map_step step, uint64_t file_size)
{
	struct dp_target *t = i->t;
	struct dp_borrow *b = NULL;
	DP_TRY(dp_borrow_held(t, f, &b));
	struct dp_error *err = step(t, b, file_size);
	struct dp_error *end = dp_borrow_end(b, NULL);
	if (!err)
		return end;
	dp_error_destroy(end);
	return err;
}

/*
 * All threads are held, although only one works: on a busy machine that one would otherwise wait for a processor at each of its
 * calls, and be held for many times longer.
 */
static struct dp_error *map_once(struct install *i, map_step step, uint64_t file_size)
{
	struct dp_freeze f = {0};
	if (i->t->launch)
		return map_held(i, dp_launch_freeze(i->t->launch), step, file_size);
	DP_TRY(dp_freeze_patiently(i->t, &f));
	struct dp_error *err = map_held(i, &f, step, file_size);
	dp_thaw_all(&f);
	i->stats->freezes++;
	note_pause(i, &f, "mapping");
	return err;
}

static struct dp_error *map_patiently(struct install *i, map_step step, uint64_t file_size)
{
	for (int tried = 0;; tried++) {
		struct dp_error *err = map_once(i, step, file_size);
		if (!err || err->tag != DP_TAG_NO_THREAD || tried >= MAP_TRIES)
			return err;
		dp_error_destroy(err); /* a moment later a thread stands elsewhere */
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	}
}

static struct dp_error *map(struct install *i, uint64_t file_size)
{
	DP_TRY(map_patiently(i, dp_map_begin, file_size));
	i->t->installed = true; /* from here on there is something to take out */
	return map_patiently(i, map_finish, file_size);
}

static struct dp_error *fill(struct install *i)
{
	struct dp_target *t = i->t;
	struct dp_agent_image agent;
	DP_TRY(dp_agent_image_load(&agent));
	DP_TRY(dp_shared_write(t, &t->in.region[DP_REGION_TEXT], agent.bytes, agent.size));
	if (i->unwind_size)
		DP_TRY(dp_shared_write(t, &t->in.region[DP_REGION_TABLES], i->unwind, i->unwind_size));
	for (size_t k = 0; k < i->nextents; k++)
		DP_TRY(dp_shared_write(t, &t->in.region[DP_REGION_FIXED + k], i->extents[k].bytes, i->extents[k].n));
	DP_TRY(dp_trap_fill(t, i->plans, i->nplans));
	return dp_shared_fill(t);
}

static void hex(const uint8_t *bytes, size_t n, char *to)
{
	for (size_t i = 0; i < n; i++)
		sprintf(to + 3 * i, "%02x ", bytes[i]);
	to[n ? 3 * n - 1 : 0] = 0;
}

/* ---- probes that were there before -------------------------------------------------------------------------------------------
 */

static bool may_cover(const struct dp_placed *p, const struct dp_placed *q)
{
	return q->announced || (p->probe == DP_NO_PROBE && q->probe == DP_NO_PROBE);
}

/* Does one of them change a byte that the other changes or relies upon? */
static bool in_the_way(const struct dp_placed *p, const struct dp_placed *q)
{
	for (uint64_t at = p->addr > q->addr ? p->addr : q->addr; at < p->addr + p->len && at < q->addr + q->len; at++) {
		const uint64_t a = at - p->addr, b = at - q->addr;
		if (p->new_bytes[a] != p->old_bytes[a] || q->new_bytes[b] != q->old_bytes[b])
			return true;
	}
	return false;
}

static struct dp_error *check_left(const struct install *i, const struct dp_placed *p, const struct dp_placed *below,
                                   const struct dp_placed *q)
{
	if (q->state != DP_SITE_PLANNED || q->changed || q == below || !in_the_way(p, q))
		return NULL;
	if (below && q->covered && q->addr == p->addr)
		return NULL; /* rests under that one */
	return dp_error(DP_TAG_STANDING, "a probe that an earlier dynprobe left in %d stands at 0x%llx%s; take it out first",
	                i->t->process.pid, (unsigned long long)q->addr, q->addr == p->addr ? "" : ", in the way");
}

/*
 * A window's inner instructions may be where a thread comes back to from the stub of an older probe nearby, even of one that was
 * taken out: until its group is unmapped, threads may still be inside.
 */
static bool may_come_back(const struct install *i, struct dp_freeze *f, const struct dp_placed *p)
{
	char why[128];
	for (size_t n = 0; n < i->t->nstanding; n++) {
		const struct dp_installation *in = &i->t->standing[n]->in;
		bool near = false;
		for (size_t k = 0; k < in->nplaced && !near; k++)
			near = in->placed[k].addr + 32 > p->addr && in->placed[k].addr < p->addr + 32;
		if (near && !i->t->standing[n]->unmapped && !dp_quiesce(i->t, in, f, why))
			return true;
	}
	return false;
}

/* *below: the probe that this one supersedes, or NULL. */
static struct dp_error *check_standing(const struct install *i, const struct dp_placed *p, struct dp_placed **below)
{
	struct dp_placed *top = dp_standing_below(i->t, &i->t->in, p);
	*below = top && may_cover(p, top) ? top : NULL;
	for (size_t n = 0; n < i->t->nstanding; n++) {
		const struct dp_standing *s = i->t->standing[n];
		for (size_t k = 0; !s->unmapped && k < s->in.nplaced; k++)
			DP_TRY(check_left(i, p, *below, &s->in.placed[k]));
	}
	return NULL;
}

/* ---- the transaction
 * ----------------------------------------------------------------------------------------------------------- */

static struct dp_error *compare(const struct install *i, const struct dp_placed *p, const struct dp_placed *below)
{
	const uint8_t *expected = below ? below->new_bytes : p->old_bytes;
	uint8_t now[sizeof(p->old_bytes)];
	char is[64], should[64];
	if (dp_mem_read(&i->t->process, dp_addr_of(p->addr), now, p->len) != p->len)
		return dp_error(DP_TAG_CHANGED, "0x%llx is no longer mapped", (unsigned long long)p->addr);
	if (!memcmp(now, expected, p->len))
		return NULL;
	hex(now, p->len, is);
	hex(expected, p->len, should);
	return dp_error(DP_TAG_FOREIGN,
	                "the bytes at 0x%llx are %s instead of %s: another tool%s patched this place; detach it first",
	                (unsigned long long)p->addr, is, should, now[0] == 0xcc ? " (a breakpoint or uprobe)" : "");
}

static struct dp_error *check_site(const struct install *i, struct dp_freeze *f, size_t k, struct dp_placed **below)
{
	const struct dp_placed *p = &i->t->in.placed[k];
	const struct dp_plan *plan = &i->plans[k];
	uint64_t inside[sizeof(plan->interior)];
	if (dp_page_down(p->addr) != dp_page_down(p->addr + p->len - 1))
		return dp_error(DP_TAG_CROSS_PAGE, "the jump at 0x%llx would cross a page boundary", (unsigned long long)p->addr);
	for (size_t n = 0; n < plan->ninterior; n++)
		inside[n] = plan->site + plan->interior[n];
	DP_TRY(check_standing(i, p, below));
	if (plan->ninterior && (may_come_back(i, f, p) || dp_stands_at(i->t, f, inside, plan->ninterior)))
		return dp_error(DP_TAG_BUSY, "a thread stands, or will return, inside the %u bytes at 0x%llx", p->len,
		                (unsigned long long)p->addr);
	return compare(i, p, *below);
}

static bool is_trap(const struct install *i, size_t k)
{
	return i->plans[k].tactic == DP_TACTIC_TRAP;
}

/* All threads are held. Sites are independent: one that is refused leaves the others alone. */
static void write_sites(struct install *i, struct dp_freeze *f, bool traps)
{
	for (size_t k = 0; k < i->nplans; k++) {
		struct dp_placed *p = &i->t->in.placed[k], *below = NULL;
		if (is_trap(i, k) != traps)
			continue;
		struct dp_error *err = check_site(i, f, k, &below);
		if (!err)
			err = dp_mem_write_text(&i->t->process, f->thread[0].tid, dp_addr_of(p->addr), p->new_bytes, p->len,
			                        &i->stats->written_by_poke);
		p->written = !err;
		if (err)
			p->state = p->entry->state = DP_SITE_RESTORED;
		else if (below)
			below->covered = true;
		i->results[k].refused = err;
	}
}

static struct dp_error *patch_held(struct install *i, struct dp_freeze *f)
{
	struct dp_target *t = i->t;
	DP_TRY(dp_still_ours(t));
	if (!dp_identity_holds(t, f, t->runtime.identity, t->runtime.tid_offset))
		return dp_error(DP_TAG_CHANGED, "the target's threads changed their control blocks during attach; try again");
	write_sites(i, f, false);
	i->stats->threads = (unsigned)f->n;
	return NULL;
}

static struct dp_error *patch(struct install *i)
{
	struct dp_target *t = i->t;
	if (t->launch)
		return patch_held(i, dp_launch_freeze(t->launch));
	struct dp_freeze f = {0};
	DP_TRY(dp_freeze_patiently(t, &f));
	struct dp_error *err = patch_held(i, &f);
	dp_thaw_all(&f);
	i->stats->freezes++;
	note_pause(i, &f, "patching");
	return err;
}

/* ---- traps: when the hooks stand ------------------------------------------------------------------------------------------ */

static void write_traps(void *data, struct dp_freeze *f)
{
	write_sites(data, f, true);
}

static struct dp_error *check_hooks(const struct install *i)
{
	for (size_t k = 0; k < i->nplans; k++)
		if (i->plans[k].probe == DP_NO_PROBE && i->results[k].refused)
			return dp_error(DP_TAG_TRAP_UNSAFE, "no hook on a system call: %s", i->results[k].refused->message);
	return NULL;
}

static void refuse_traps(struct install *i, const struct dp_error *why)
{
	for (size_t k = 0; k < i->nplans; k++)
		if (is_trap(i, k) && !i->t->in.placed[k].written) {
			struct dp_placed *p = &i->t->in.placed[k];
			p->state = p->entry->state = DP_SITE_RESTORED;
			if (!i->results[k].refused)
				i->results[k].refused = dp_error(DP_TAG_TRAP_UNSAFE, "%s", why->message);
		}
}

static void add_traps(struct install *i)
{
	if (!dp_trap_planned(i->plans, i->nplans))
		return;
	struct dp_error *err = check_hooks(i);
	if (!err)
		err = dp_trap_arm(i->t, write_traps, i);
	if (err)
		refuse_traps(i, err);
	dp_error_destroy(err);
}

static struct dp_error *transaction(struct install *i)
{
	uint64_t file_size = 0;
	DP_TRY(add_extents(i, &file_size));
	DP_TRY(add_placed(i));
	DP_TRY(map(i, file_size));
	DP_TRY(fill(i));
	DP_TRY(patch(i));
	add_traps(i);
	return NULL;
}

struct dp_error *dp_target_install(struct dp_target *t, const struct dp_extent *extents, size_t nextents,
                                   const struct dp_plan *plans, size_t nplans, const void *unwind, size_t unwind_size,
                                   struct dp_install_result *results, struct dp_install_stats *stats)
{
	struct install i = {t, extents, nextents, plans, nplans, unwind, unwind_size, results, stats};
	struct dp_priority priority;
	*stats = (struct dp_install_stats){0};
	dp_priority_raise(&priority);
	struct dp_error *err = transaction(&i);
	dp_priority_restore(&priority);
	if (err && t->installed) {
		struct dp_remove_report ignored;
		dp_error_destroy(dp_target_remove(t, &ignored));
	}
	return err;
}
