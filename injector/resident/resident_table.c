/* SPDX-License-Identifier: MIT */
/*
 * Reads the control page and what it refers to from a process that could have written anything there. Every offset and count is
 * checked against the region's size before use. If one is invalid, everything is refused: half a site table would leave half of
 * the text patched.
 */
#include "injector/patch/quiesce/code_index.h"
#include "injector/resident/resident.h"

#include "agent/unwind/apart.h"
#include "agent/unwind/unwind.h"

#include <stdlib.h>
#include <string.h>

static bool within(uint64_t offset, uint64_t count, uint64_t each, uint64_t size)
{
	return offset % 4 == 0 && offset >= sizeof(struct dp_control) && offset <= size && count <= (size - offset) / each;
}

/* Checks the fields that only resident probes have. */
static bool kept_valid(const struct dp_control *c, uint64_t size)
{
	const uint64_t room = c->manifest_size, both = c->manifest_offset & ~room;
	const bool sound = room >= DP_PAGE && room <= DP_MANIFEST_MAX && !(room & (room - 1)); /* an older tool's is smaller */
	return within(c->gates_offset, c->nprobes, sizeof(uint32_t), size) && sound && c->manifest_offset % room == 0 &&
	       within(both, 2, room, size);
}

bool dp_control_valid(const struct dp_control *c, uint64_t size)
{
	const uint64_t requests = c->nprobes + (c->trap ? DP_HOOKS_MAX : 0);
	const bool counts = c->nprobes <= DP_NO_PROBE && c->nsites <= DP_PLANS_PER_REQUEST * requests + DP_OWN_SITES && c->nslots;
	const bool ring = c->ring_size >= 2 * DP_RECORD_MAX && !(c->ring_size & (c->ring_size - 1));
	return counts && ring && within(c->lost_offset, c->nprobes, sizeof(struct dp_lost), size) && c->lost_offset % 8 == 0 &&
	       within(c->sites_offset, c->nsites, sizeof(struct dp_site_entry), size) &&
	       within(c->slots_offset, c->nslots, sizeof(struct dp_slot), size) && c->slots_offset % 8 == 0 &&
	       within(c->rings_offset, c->nslots, c->ring_size, size) && c->rings_offset % 8 == 0 &&
	       (!c->cache_offset || within(c->cache_offset, c->nslots, DP_APART_TOP, size)) &&
	       (!c->kept || kept_valid(c, size));
}

static bool site_valid(const struct dp_resident *s, const struct dp_site_entry *e)
{
	return e->len && e->len <= sizeof(e->old_bytes) && e->changed <= e->len && e->npairs <= DP_SITE_PAIRS &&
	       e->state <= DP_SITE_WAITING && e->stub <= e->stub_end &&
	       (e->probe < s->control.nprobes || e->probe == DP_NO_PROBE);
}

/* A fork's table is its parent's: later changes of site states there do not apply here. */
static void take_site(const struct dp_resident *s, const struct dp_site_entry *e, uint64_t at, struct dp_placed *p)
{
	*p = (struct dp_placed){
	        .addr = e->addr,
	        .probe = e->probe,
	        .len = e->len,
	        .nchanged = e->changed,
	        .written = true,
	        .state = s->in.foreign ? DP_SITE_PLANNED : (enum dp_site_state)e->state,
	        .stub = e->stub,
	        .stub_end = e->stub_end,
	        .guarded = (e->flags & DP_SITE_GUARDED) != 0,
	        .calls_out = e->probe == DP_NO_PROBE && !(e->flags & DP_SITE_NO_HOOK),
	        .npairs = e->npairs,
	        .entry_at = s->in.foreign ? 0 : at,
	};
	memcpy(p->old_bytes, e->old_bytes, sizeof(p->old_bytes));
	memcpy(p->new_bytes, e->new_bytes, sizeof(p->new_bytes));
	for (size_t i = 0; i < e->npairs; i++)
		p->pair[i] = (struct dp_pc_pair){e->pair[i].stub, e->pair[i].original, e->pair[i].fix_rcx};
}

/* For queries about single probes, and about addresses, among thousands of sites. */
static struct dp_error *index_sites(struct dp_resident *s)
{
	const size_t n = s->control.nprobes;
	dp_installation_index(&s->in);
	s->site_of = calloc(n + 1, sizeof(*s->site_of));
	if (!s->site_of)
		return dp_error_nomem();
	memset(s->site_of, 0xff, n * sizeof(*s->site_of));
	for (size_t i = s->in.nplaced; i-- > 0;)
		if (s->in.placed[i].probe < n)
			s->site_of[s->in.placed[i].probe] = i;
	return NULL;
}

struct dp_error *dp_resident_read_sites(struct dp_resident *s)
{
	const struct dp_control *c = &s->control;
	s->in.placed = calloc(c->nsites + 1u, sizeof(*s->in.placed));
	if (!s->in.placed)
		return dp_error_nomem();
	for (size_t i = 0; i < c->nsites; i++) {
		struct dp_site_entry e;
		const uint64_t at = c->sites_offset + i * sizeof(e);
		DP_TRY(dp_resident_get(s, at, &e, sizeof(e)));
		if (!site_valid(s, &e))
			return dp_error(DP_TAG_DAMAGED,
			                "entry %zu of the site table of an earlier dynprobe in process %d is damaged", i,
			                s->target->process.pid);
		take_site(s, &e, s->data + at, &s->in.placed[s->in.nplaced++]);
		s->in.calls_out |= s->in.placed[s->in.nplaced - 1].calls_out;
	}
	return index_sites(s);
}

struct dp_error *dp_resident_read_manifest(struct dp_resident *s)
{
	const uint64_t room = s->control.manifest_size;
	char *text = malloc(room);
	struct dp_error *err = NULL;
	bool ends = false;
	if (!text)
		return dp_error_nomem();
	for (uint64_t at = 0; !err && !ends && at < room; at += DP_PAGE) { /* reading a page allocates it */
		err = dp_resident_get(s, s->control.manifest_offset + at, text + at, DP_PAGE);
		ends = !err && memchr(text + at, 0, DP_PAGE);
	}
	if (!err && !ends)
		err = dp_error(DP_TAG_DAMAGED, "the manifest of an earlier dynprobe in process %d has no end",
		               s->target->process.pid);
	if (!err)
		s->manifest = strdup(text); /* most of the buffer is empty */
	free(text);
	return err || s->manifest ? err : dp_error_nomem();
}
