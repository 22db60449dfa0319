/* SPDX-License-Identifier: MIT */
#include "injector/patch/semaphores.h"

#include "injector/patch/quiesce/code_index.h"
#include "injector/target/group/group.h"
#include "injector/tracee/tracee.h"
#include "probes/point/usdt/usdt.h"

#include <stdlib.h>

/* The counter of the marker at `site`; 0 if there is none. */
static uint64_t semaphore_of(struct dp_target *t, uint64_t site)
{
	struct dp_module *m = t->image ? dp_image_module_at(t->image, dp_addr_of(site)) : NULL;
	const struct dp_usdt *marker = m ? dp_module_marker_at(m, dp_addr_of(site)) : NULL;
	return marker && marker->semaphore ? marker->semaphore + (uint64_t)dp_module_bias(m) : 0;
}

/* If the library was unloaded, its counter is gone: nothing to do, and no error. */
static void count(struct dp_target *t, uint64_t addr, int change)
{
	uint16_t value;
	if (dp_mem_read(&t->process, dp_addr_of(addr), &value, sizeof(value)) != sizeof(value))
		return;
	const int sum = value + change;
	if (sum < 0 || sum > UINT16_MAX)
		return;
	value = (uint16_t)sum;
	dp_error_destroy(dp_mem_write(&t->process, dp_addr_of(addr), &value, sizeof(value)));
}

/* The site is in place and only changes its owner (dp_resident_supersede()), and so does its count. */
static bool announced(struct dp_target *t, uint64_t site)
{
	for (size_t k = 0; k < t->nstanding; k++) {
		struct dp_near near = dp_near(&t->resident[k]->in, site, site + 1);
		for (size_t i; (i = dp_near_next(&near)) != SIZE_MAX;)
			if (t->resident[k]->in.placed[i].announced)
				return true;
	}
	return false;
}

void dp_semaphores_raise(struct dp_target *t, const struct dp_plan *plans, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const uint64_t addr = plans[i].probe == DP_NO_PROBE ? 0 : semaphore_of(t, plans[i].site);
		if (addr && !announced(t, plans[i].site))
			count(t, addr, 1);
	}
}

struct dp_semaphores {
	size_t n;
	bool stood[];
};

static bool holds_count(const struct dp_placed *p)
{
	return p->probe != DP_NO_PROBE && dp_placed_stands(p);
}

void dp_semaphores_settle(struct dp_target *t, const struct dp_plan *plans, size_t n)
{
	for (size_t i = 0; i < n && !t->gone; i++) {
		const bool stands = t->installed && i < t->in.nplaced && dp_placed_stands(&t->in.placed[i]);
		const uint64_t addr = stands || plans[i].probe == DP_NO_PROBE ? 0 : semaphore_of(t, plans[i].site);
		if (addr && !announced(t, plans[i].site))
			count(t, addr, -1);
	}
}

void dp_semaphores_lower(struct dp_target *t, const struct dp_placed *p)
{
	const uint64_t addr = p->probe == DP_NO_PROBE ? 0 : semaphore_of(t, p->addr);
	if (addr)
		count(t, addr, -1);
}

struct dp_semaphores *dp_semaphores_before(struct dp_target *t, const struct dp_installation *in)
{
	struct dp_semaphores *b = t->gone ? NULL : calloc(1, sizeof(*b) + in->nplaced);
	if (!b)
		return NULL;
	b->n = in->nplaced;
	for (size_t i = 0; i < in->nplaced; i++)
		b->stood[i] = holds_count(&in->placed[i]);
	return b;
}

void dp_semaphores_after(struct dp_target *t, const struct dp_installation *in, struct dp_semaphores *before)
{
	for (size_t i = 0; before && !t->gone && i < before->n && i < in->nplaced; i++) {
		const struct dp_placed *p = &in->placed[i];
		const uint64_t addr = before->stood[i] && !holds_count(p) ? semaphore_of(t, p->addr) : 0;
		if (addr)
			count(t, addr, -1);
	}
	free(before);
}
