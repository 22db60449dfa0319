/* SPDX-License-Identifier: MIT */
/* Maps addresses to items by a hash table of blocks of 256 addresses: code is dense, and neighbours are looked up together. */
#include "trampoline/space/sites.h"

#include "trampoline/code/text.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK 256u

struct block {
	uint64_t addr;
	uint32_t item[BLOCK]; /* index + 1; 0: none */
};

struct dp_sites {
	struct dp_item **item;
	uint32_t n, cap;
	uint32_t seq;
	struct block **slot; /* open addressing; `mask` + 1 slots, at most half of them used */
	size_t mask, nblocks;
};

struct dp_error *dp_sites_create(struct dp_sites **ret)
{
	struct dp_sites *sites = calloc(1, sizeof(*sites));
	if (sites) {
		sites->mask = 63;
		sites->slot = calloc(sites->mask + 1, sizeof(struct block *));
	}
	if (!sites || !sites->slot) {
		free(sites);
		return dp_error_nomem();
	}
	*ret = sites;
	return NULL;
}

struct dp_sites *dp_sites_destroy(struct dp_sites *sites)
{
	if (!sites)
		return NULL;
	for (size_t i = 0; i <= sites->mask; i++)
		free(sites->slot[i]);
	for (uint32_t i = 0; i < sites->n; i++)
		free(sites->item[i]);
	free(sites->slot);
	free(sites->item);
	free(sites);
	return NULL;
}

uint32_t dp_sites_n(const struct dp_sites *sites)
{
	return sites->n;
}

struct dp_item *dp_sites_item(const struct dp_sites *sites, uint32_t i)
{
	return sites->item[i];
}

/* ---- the map ---------------------------------------------------------------------------------------------------------- */

static struct block **slot_of(struct block **slot, size_t mask, uint64_t addr)
{
	size_t i = (size_t)((addr / BLOCK) * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;
	while (slot[i] && slot[i]->addr != addr)
		i = (i + 1) & mask;
	return &slot[i];
}

static const struct block *block_at(const struct dp_sites *sites, uint64_t addr)
{
	return *slot_of(sites->slot, sites->mask, addr & ~(uint64_t)(BLOCK - 1));
}

static bool grow(struct dp_sites *sites)
{
	size_t mask = 2 * sites->mask + 1;
	struct block **slot = calloc(mask + 1, sizeof(struct block *));
	if (!slot)
		return false;
	for (size_t i = 0; i <= sites->mask; i++)
		if (sites->slot[i])
			*slot_of(slot, mask, sites->slot[i]->addr) = sites->slot[i];
	free(sites->slot);
	sites->slot = slot;
	sites->mask = mask;
	return true;
}

/* Ensures that there is a block for `addr`. */
static bool prepare(struct dp_sites *sites, uint64_t addr)
{
	addr &= ~(uint64_t)(BLOCK - 1);
	if (*slot_of(sites->slot, sites->mask, addr))
		return true;
	if (2 * (sites->nblocks + 1) > sites->mask && !grow(sites))
		return false;
	struct block *block = calloc(1, sizeof(*block));
	if (!block)
		return false;
	block->addr = addr;
	*slot_of(sites->slot, sites->mask, addr) = block;
	sites->nblocks++;
	return true;
}

static void set(struct dp_sites *sites, uint64_t addr, uint32_t item)
{
	struct block *block = *slot_of(sites->slot, sites->mask, addr & ~(uint64_t)(BLOCK - 1));
	block->item[addr % BLOCK] = item + 1;
}

uint32_t dp_sites_at(const struct dp_sites *sites, uint64_t addr)
{
	const struct block *block = block_at(sites, addr);
	return block ? block->item[addr % BLOCK] - 1 : DP_NO_ITEM;
}

/* The first item at or after `addr`, below `end`. */
static uint32_t next_item(const struct dp_sites *sites, uint64_t addr, uint64_t end)
{
	while (addr < end) {
		const struct block *block = block_at(sites, addr);
		uint64_t stop = (addr | (BLOCK - 1)) + 1;
		if (stop > end)
			stop = end;
		for (; block && addr < stop; addr++)
			if (block->item[addr % BLOCK])
				return block->item[addr % BLOCK] - 1;
		addr = stop;
	}
	return DP_NO_ITEM;
}

uint32_t dp_sites_touching(const struct dp_sites *sites, uint64_t addr, size_t n, uint64_t *from)
{
	if (*from < addr - (DP_SITE_SPAN - 1))
		*from = addr - (DP_SITE_SPAN - 1);
	for (;;) {
		uint32_t i = next_item(sites, *from, addr + n);
		if (i == DP_NO_ITEM)
			return i;
		const struct dp_plan *plan = &sites->item[i]->plan;
		*from = plan->site + 1;
		if (plan->site + plan->len > addr)
			return i;
	}
}

/* ---- items ------------------------------------------------------------------------------------------------------------ */

uint32_t dp_sites_new(struct dp_sites *sites, const struct dp_item *item)
{
	if (sites->n == sites->cap) {
		uint32_t cap = sites->cap ? 2 * sites->cap : 16;
		struct dp_item **grown = realloc(sites->item, cap * sizeof(struct dp_item *));
		if (!grown)
			return DP_NO_ITEM;
		sites->item = grown;
		sites->cap = cap;
	}
	struct dp_item *copy = malloc(sizeof(*copy));
	if (!copy)
		return DP_NO_ITEM;
	*copy = *item;
	copy->live = false;
	copy->request.text = &copy->text;
	sites->item[sites->n] = copy;
	return sites->n++;
}

static bool support(struct dp_sites *sites, struct dp_item *item, uint32_t by)
{
	for (uint8_t k = 0; k < item->plan.nsupports; k++)
		if (item->support[k] == by)
			return true;
	if (item->plan.nsupports == DP_PLAN_SUPPORTS)
		return false;
	item->plan.support[item->plan.nsupports] = sites->item[by]->plan.site;
	item->support[item->plan.nsupports++] = by;
	return true;
}

static bool find_supports(struct dp_sites *sites, struct dp_item *item)
{
	const struct dp_plan *plan = &item->plan;
	const uint64_t start = plan->site + plan->changed, n = (uint64_t)plan->len - plan->changed;
	uint8_t named = plan->nsupports;
	item->plan.nsupports = 0;
	for (uint8_t k = 0; k < named; k++)
		if (!support(sites, item, dp_sites_at(sites, plan->support[k])))
			return false;
	if (item->below != DP_NO_ITEM && !support(sites, item, item->below))
		return false;
	for (uint64_t from = 0; n;) {
		uint32_t i = dp_sites_touching(sites, start, n, &from);
		if (i == DP_NO_ITEM)
			break;
		const struct dp_plan *other = &sites->item[i]->plan;
		if (other->site != plan->site && other->site + other->changed > start && !support(sites, item, i))
			return false;
	}
	return true;
}

static void count(struct dp_sites *sites, const struct dp_item *item, uint32_t by)
{
	for (uint8_t k = 0; k < item->plan.nsupports; k++)
		sites->item[item->support[k]]->nusers += by;
}

bool dp_sites_enter(struct dp_sites *sites, uint32_t i)
{
	struct dp_item *item = sites->item[i];
	if (!prepare(sites, item->plan.site) || !find_supports(sites, item))
		return false;
	item->seq = sites->seq++;
	item->nusers = 0;
	dp_sites_return(sites, i);
	return true;
}

void dp_sites_leave(struct dp_sites *sites, uint32_t i)
{
	struct dp_item *item = sites->item[i];
	set(sites, item->plan.site, item->below);
	count(sites, item, UINT32_MAX);
	item->live = false;
}

void dp_sites_return(struct dp_sites *sites, uint32_t i)
{
	struct dp_item *item = sites->item[i];
	set(sites, item->plan.site, i);
	count(sites, item, 1);
	item->live = true;
}

/* ---- bytes ------------------------------------------------------------------------------------------------------------ */

static void overlay(const struct dp_item *item, uint64_t addr, size_t n, uint8_t *byte, uint8_t *state)
{
	const struct dp_plan *plan = &item->plan;
	for (uint64_t x = plan->site < addr ? addr : plan->site; x < plan->site + plan->len && x < addr + n; x++) {
		if (x >= plan->site + plan->changed) {
			state[x - addr] |= DP_BYTE_RELIED;
			continue;
		}
		state[x - addr] |= item->foreign ? DP_BYTE_UNKNOWN | DP_BYTE_WRITTEN : DP_BYTE_WRITTEN;
		byte[x - addr] = plan->new_bytes[x - plan->site];
	}
}

void dp_sites_bytes(const struct dp_sites *sites, const struct dp_text *text, uint64_t addr, size_t n, uint8_t *byte,
                    uint8_t *state)
{
	memset(state, DP_BYTE_UNKNOWN, n);
	memset(byte, 0, n);
	for (size_t i = 0; i < text->nsegments; i++) {
		const struct dp_segment *s = &text->segment[i];
		uint64_t lo = s->addr > addr ? s->addr : addr, hi = s->addr + s->n < addr + n ? s->addr + s->n : addr + n;
		if (!s->exec || lo >= hi)
			continue;
		memcpy(byte + (lo - addr), s->bytes + (lo - s->addr), hi - lo);
		memset(state + (lo - addr), 0, hi - lo);
	}
	for (size_t i = 0; i < text->nkeep; i++)
		for (uint64_t x = text->keep[i].start > addr ? text->keep[i].start : addr;
		     x < text->keep[i].start + text->keep[i].size && x < addr + n; x++)
			state[x - addr] |= DP_BYTE_KEEP;
	for (uint64_t from = 0;;) {
		uint32_t i = dp_sites_touching(sites, addr, n, &from);
		if (i == DP_NO_ITEM)
			return;
		overlay(sites->item[i], addr, n, byte, state);
	}
}
