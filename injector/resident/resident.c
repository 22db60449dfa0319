/* SPDX-License-Identifier: MIT */
/*
 * Probes that an earlier tool left on purpose: queries, and changes that need no stop. All of it is in the data region, which the
 * target can write, so we can too, through its memory. The memfd is not needed; only root could open it again.
 */
#include "injector/resident/resident.h"
#include "injector/patch/quiesce/code_index.h"
#include "injector/ring/drain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- the target's memory ------------------------------------------------------------------------------------------------------
 */

static struct dp_error *out_of_reach(const struct dp_resident *s)
{
	const struct dp_target *t = s->target;
	return dp_error(DP_TAG_GONE, "the probes that an earlier dynprobe left in process %d (%s) are gone", t->process.pid,
	                t->process.comm);
}

struct dp_error *dp_resident_get(const struct dp_resident *s, uint64_t offset, void *buf, size_t n)
{
	struct dp_target *t = s->target;
	if (s->unmapped)
		return out_of_reach(s);
	if (dp_mem_read(&t->process, dp_addr_of(s->data + offset), buf, n) == n)
		return NULL;
	return dp_pick_living(t) && dp_mem_read(&t->process, dp_addr_of(s->data + offset), buf, n) == n ? NULL : out_of_reach(s);
}

struct dp_error *dp_resident_put(const struct dp_resident *s, uint64_t offset, const void *buf, size_t n)
{
	struct dp_target *t = s->target;
	if (s->unmapped)
		return out_of_reach(s);
	struct dp_error *err = dp_mem_write(&t->process, dp_addr_of(s->data + offset), buf, n);
	if (!err || err->tag != DP_TAG_GONE || !dp_pick_living(t))
		return err;
	dp_error_destroy(err);
	return dp_mem_write(&t->process, dp_addr_of(s->data + offset), buf, n);
}

/* ---- queries --------------------------------------------------------------------------------------------------------------- */

size_t dp_target_nresidents(const struct dp_target *t)
{
	return t->nstanding;
}

struct dp_resident *dp_target_resident(struct dp_target *t, size_t i)
{
	return t->resident[i];
}

const char *dp_resident_manifest(const struct dp_resident *s)
{
	return s->manifest;
}

unsigned dp_resident_nprobes(const struct dp_resident *s)
{
	return s->control.nprobes;
}

uint64_t dp_resident_sink(const struct dp_resident *s)
{
	return s->control.sink;
}

bool dp_resident_dumps(const struct dp_resident *s)
{
	return s->control.clocks.tick;
}

bool dp_resident_any(const struct dp_resident *s)
{
	for (size_t i = 0; !s->unmapped && i < s->in.nplaced; i++)
		if (s->in.placed[i].probe != DP_NO_PROBE && s->in.placed[i].state != DP_SITE_RESTORED)
			return true;
	return false;
}

static struct dp_placed *site_of(const struct dp_resident *s, unsigned probe)
{
	const size_t i = !s->unmapped && s->site_of && probe < s->control.nprobes ? s->site_of[probe] : SIZE_MAX;
	return i == SIZE_MAX ? NULL : &s->in.placed[i];
}

uint64_t dp_resident_site(const struct dp_resident *s, unsigned probe)
{
	const struct dp_placed *p = site_of(s, probe);
	return p && p->state == DP_SITE_PLANNED && !p->changed && !p->covered ? p->addr : 0;
}

bool dp_resident_retired(const struct dp_resident *s, unsigned probe)
{
	const struct dp_placed *p = site_of(s, probe);
	return p && (p->state == DP_SITE_RETIRED || (p->state == DP_SITE_PLANNED && p->changed));
}

/* ---- changes while the program runs ---------------------------------------------------------------------------------------- */

static uint64_t gate_of(const struct dp_resident *s, unsigned probe)
{
	return s->control.gates_offset + probe * sizeof(uint32_t);
}

static struct dp_error *no_probe(const struct dp_resident *s, unsigned probe)
{
	return dp_error(DP_TAG_NO_PROBE, "probe %u of those left in process %d is not installed", probe, s->target->process.pid);
}

bool dp_resident_enabled(const struct dp_resident *s, unsigned probe)
{
	uint32_t open = 0;
	if (probe >= s->control.nprobes)
		return false;
	dp_error_destroy(dp_resident_get(s, gate_of(s, probe), &open, sizeof(open)));
	return open;
}

struct dp_error *dp_resident_enable(struct dp_resident *s, unsigned probe, bool on)
{
	const uint32_t open = on;
	if (!dp_resident_site(s, probe))
		return no_probe(s, probe);
	return dp_resident_put(s, gate_of(s, probe), &open, sizeof(open));
}

/* Writes the text to the unused buffer; then one aligned write makes it the valid one. */
struct dp_error *dp_resident_set_manifest(struct dp_resident *s, const char *manifest)
{
	const size_t n = strlen(manifest) + 1;
	const uint64_t room = s->control.manifest_offset ^ s->control.manifest_size;
	if (n > s->control.manifest_size)
		return dp_error(DP_TAG_USAGE, "the manifest of the probes has %zu bytes; the limit is %llu", n,
		                (unsigned long long)s->control.manifest_size);
	char *copy = strdup(manifest);
	if (!copy)
		return dp_error_nomem();
	struct dp_error *err = dp_resident_put(s, room, manifest, n);
	if (!err)
		err = dp_resident_put(s, offsetof(struct dp_control, manifest_offset), &room, sizeof(room));
	if (err) {
		free(copy);
		return err;
	}
	s->control.manifest_offset = room;
	free(s->manifest);
	s->manifest = copy;
	return NULL;
}

void dp_resident_loss(struct dp_resident *s, unsigned probe, struct dp_loss *ret)
{
	struct dp_lost lost;
	*ret = (struct dp_loss){0};
	if (probe >= s->control.nprobes)
		return;
	struct dp_error *err = dp_resident_get(s, s->control.lost_offset + probe * sizeof(lost), &lost, sizeof(lost));
	if (!err)
		dp_loss_of(&lost, ret);
	dp_error_destroy(err);
	if (s->shadow)
		dp_shadow_loss(s->shadow, probe, ret);
}

/* ---- stacked sites --------------------------------------------------------------------------------------------------------- */

struct dp_error *dp_resident_supersede(struct dp_resident *s, unsigned probe)
{
	if (!dp_resident_site(s, probe))
		return no_probe(s, probe);
	site_of(s, probe)->announced = true;
	return NULL;
}

static bool same_place(const struct dp_placed *a, const struct dp_placed *b)
{
	const uint8_t len = a->len > b->len ? a->len : b->len;
	return a->addr == b->addr && !memcmp(a->old_bytes, b->old_bytes, len);
}

struct dp_placed *dp_resident_below(struct dp_target *t, const struct dp_installation *except, const struct dp_placed *p)
{
	struct dp_placed *found = NULL;
	for (size_t i = 0; i < t->nstanding; i++) {
		struct dp_installation *in = &t->resident[i]->in;
		struct dp_near near = dp_near(in, p->addr, p->addr + 1);
		if (t->resident[i]->unmapped || in == except)
			continue;
		for (size_t k; (k = dp_near_next(&near)) != SIZE_MAX;) {
			struct dp_placed *q = &in->placed[k];
			if (dp_placed_stands(q) && same_place(p, q) && (!found || found->covered))
				found = q;
		}
	}
	return found;
}

static bool claims(const struct dp_installation *in, const struct dp_placed *p, const uint8_t *now)
{
	struct dp_near near = dp_near(in, p->addr, p->addr + 1);
	for (size_t k; (k = dp_near_next(&near)) != SIZE_MAX;) {
		const struct dp_placed *q = &in->placed[k];
		if (q->written && (q->state == DP_SITE_PLANNED || q->state == DP_SITE_WAITING) &&
		    !memcmp(now, q->new_bytes, q->len))
			return true;
	}
	return false;
}

/* `now` has p->len bytes; a site written over another covers all of its bytes. */
bool dp_resident_claims(struct dp_target *t, const struct dp_installation *except, const struct dp_placed *p, const uint8_t *now)
{
	if (except != &t->in && t->installed && claims(&t->in, p, now))
		return true;
	for (size_t i = 0; i < t->nstanding; i++)
		if (!t->resident[i]->unmapped && &t->resident[i]->in != except && claims(&t->resident[i]->in, p, now))
			return true;
	return false;
}
