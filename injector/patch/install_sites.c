/* SPDX-License-Identifier: MIT */
/*
 * Writes one site if its bytes are as expected: with all threads held by one write within a page (or by page replacement, if the
 * jump crosses a page boundary); live by page replacement.
 */
#include "injector/patch/install.h"
#include "injector/patch/quiesce/code_index.h"
#include "injector/patch/restore.h"
#include "injector/target/group/group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void hex(const uint8_t *bytes, size_t n, char *to)
{
	for (size_t i = 0; i < n; i++)
		sprintf(to + 3 * i, "%02x ", bytes[i]);
	to[n ? 3 * n - 1 : 0] = 0;
}

/* ---- earlier probes -------------------------------------------------------------------------------------------------------- */

static bool may_cover(const struct dp_placed *p, const struct dp_placed *q)
{
	return q->announced || (p->probe == DP_NO_PROBE && q->probe == DP_NO_PROBE);
}

/* Does one of them change a byte that the other changes or relies on? */
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
	if (!dp_placed_stands(q) || q == below || !in_the_way(p, q))
		return NULL;
	if (below && q->covered && q->addr == p->addr)
		return NULL; /* covered by that one */
	return dp_error(DP_TAG_STANDING, "a probe that an earlier dynprobe left in process %d is at 0x%llx%s; remove it first",
	                i->t->process.pid, (unsigned long long)q->addr, q->addr == p->addr ? "" : " and overlaps");
}

/* Uncovered jumps elsewhere may lead to one that is embedded in these bytes: then the bytes must stay as they are. */
static struct dp_error *check_hidden(const struct install *i, const struct dp_placed *below)
{
	for (size_t n = 0; below && n < i->t->nstanding; n++) {
		const struct dp_resident *s = i->t->resident[n];
		struct dp_near near = dp_near_leading(&s->in, below->addr, below->addr + below->len);
		for (size_t k; !s->unmapped && (k = dp_near_next(&near)) != SIZE_MAX;) {
			const struct dp_placed *q = &s->in.placed[k];
			if (dp_placed_stands(q) && !q->covered && dp_placed_leads_into(q, below))
				return dp_error(
				        DP_TAG_STANDING,
				        "a probe that an earlier dynprobe left in process %d at 0x%llx jumps through 0x%llx; "
				        "remove it first",
				        i->t->process.pid, (unsigned long long)q->addr, (unsigned long long)below->addr);
		}
	}
	return NULL;
}

/* *below: the probe that this one supersedes, or NULL. */
static struct dp_error *check_standing(const struct install *i, const struct dp_placed *p, struct dp_placed **below)
{
	struct dp_placed *top = dp_resident_below(i->t, &i->t->in, p);
	*below = top && may_cover(p, top) ? top : NULL;
	for (size_t n = 0; n < i->t->nstanding; n++) {
		const struct dp_resident *s = i->t->resident[n];
		struct dp_near near = dp_near_bytes(&s->in, p->addr, p->len);
		for (size_t k; !s->unmapped && (k = dp_near_next(&near)) != SIZE_MAX;)
			DP_TRY(check_left(i, p, *below, &s->in.placed[k]));
	}
	return check_hidden(i, *below);
}

/* A site that it relies on may have been refused: a jump to an embedded one would then lead into the middle of an instruction. */
static struct dp_error *check_supports(const struct install *i, const struct dp_plan *plan)
{
	for (size_t n = 0; n < plan->nsupports; n++) {
		struct dp_near near = dp_near(&i->t->in, plan->support[n], plan->support[n] + 1);
		for (size_t k; (k = dp_near_next(&near)) != SIZE_MAX;)
			if (i->refused[k])
				return dp_error(i->refused_tag, "its jump relies on the patch at 0x%llx, which was refused",
				                (unsigned long long)plan->support[n]);
	}
	return NULL;
}

/* ---- writing --------------------------------------------------------------------------------------------------------------- */

static struct dp_error *compare(const struct install *i, const struct dp_placed *p, const struct dp_placed *below)
{
	/* our own bytes are fine too: a call that was given up may have written them */
	const uint8_t *expected = below ? below->new_bytes : p->old_bytes;
	uint8_t now[sizeof(p->old_bytes)];
	char is[64], should[64];
	const size_t got = i->swap ? dp_replace_read(i->swap, p->addr, now, p->len)
	                           : dp_mem_read(&i->t->process, dp_addr_of(p->addr), now, p->len);
	if (got != p->len)
		return dp_error(DP_TAG_CHANGED, "0x%llx is no longer mapped", (unsigned long long)p->addr);
	if (!memcmp(now, expected, p->len) || !memcmp(now, p->new_bytes, p->len))
		return NULL;
	hex(now, p->len, is);
	hex(expected, p->len, should);
	return dp_error(DP_TAG_FOREIGN,
	                "the bytes at 0x%llx are %s instead of %s: another tool%s patched this place; detach it first",
	                (unsigned long long)p->addr, is, should, now[0] == 0xcc ? " (a breakpoint or uprobe)" : "");
}

static struct dp_error *check_site(struct install *i, struct dp_freeze *f, size_t k, struct dp_placed **below)
{
	const struct dp_placed *p = &i->t->in.placed[k];
	DP_TRY(check_supports(i, &i->plans[k]));
	DP_TRY(check_standing(i, p, below));
	if (i->plans[k].ninterior && dp_install_inspection_busy(i, f, k))
		return dp_error_advise(
		        dp_error(DP_TAG_BUSY, "a thread is, or will return, inside the %u bytes at 0x%llx", p->len,
		                 (unsigned long long)p->addr),
		        "try again; a stopped process must continue first (kill -CONT PID); if a waiting thread will "
		        "return there, probe a neighbouring instruction");
	return compare(i, p, *below);
}

static struct dp_replace_edit edit_of(const struct dp_placed *p)
{
	return (struct dp_replace_edit){.addr = p->addr, .len = p->len, .n = p->len, .bytes = p->new_bytes};
}

bool dp_install_crosses(const struct install *i, size_t k)
{
	const struct dp_placed *p = &i->t->in.placed[k];
	return dp_page_down(p->addr) != dp_page_down(p->addr + p->len - 1);
}

/* Replaces the pages: two writes could leave half a jump if the tool dies in between. */
static struct dp_error *write_across(struct dp_freeze *f, const struct dp_placed *p, struct dp_replace *s)
{
	const struct dp_replace_edit edit = edit_of(p);
	struct dp_error *err = NULL;
	if (dp_replace_write(s, &edit))
		err = dp_replace_commit(s, f, NULL);
	else
		err = dp_error(DP_TAG_CROSS_PAGE, "the jump at 0x%llx would cross a page boundary, and %s",
		               (unsigned long long)p->addr, dp_replace_why(s));
	return err && dp_replace_stands(s, p->addr) ? dp_error_destroy(err) : err;
}

static struct dp_error *write_held(struct install *i, size_t k, struct dp_freeze *f, struct dp_replace *across)
{
	const struct dp_placed *p = &i->t->in.placed[k];
	if (dp_install_crosses(i, k))
		return write_across(f, p, across);
	return dp_mem_write_text(&i->t->process, f->thread[0].tid, dp_addr_of(p->addr), p->new_bytes, p->len,
	                         &i->stats->written_by_poke);
}

static void take_result(struct install *i, size_t k, struct dp_placed *below, struct dp_error *err)
{
	struct dp_placed *p = &i->t->in.placed[k];
	p->written = !err;
	if (err) {
		p->state = p->entry->state = DP_SITE_RESTORED;
		i->refused[k] = true;
		i->refused_tag = err->tag;
	} else if (below) {
		below->covered = true;
	}
	i->results[k].refused = err;
}

void dp_install_refuse(struct install *i, size_t k, enum dp_tag tag, const char *why)
{
	if (!i->results[k].refused)
		take_result(i, k, NULL, dp_error(tag, "%s", why));
}

void dp_install_stands(struct install *i, size_t k, struct dp_placed *below)
{
	take_result(i, k, below, NULL);
}

void dp_install_write_held(struct install *i, size_t k, struct dp_freeze *f, struct dp_replace *across)
{
	struct dp_placed *below = NULL;
	struct dp_error *err = check_site(i, f, k, &below);
	if (!err)
		err = write_held(i, k, f, across);
	take_result(i, k, below, err);
}

bool dp_install_write_live(struct install *i, size_t k, struct dp_placed **below)
{
	const struct dp_replace_edit edit = edit_of(&i->t->in.placed[k]);
	struct dp_error *err = check_site(i, NULL, k, below);
	if (!err)
		return dp_replace_write(i->swap, &edit);
	take_result(i, k, NULL, err);
	return true;
}
