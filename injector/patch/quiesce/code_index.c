/* SPDX-License-Identifier: MIT */
#include "injector/patch/quiesce/code_index.h"

#include <stdlib.h>
#include <sys/mman.h>

#define LONGEST        16u /* bytes of a site */
#define SHORT_JUMP     0xeb
#define SHORT_JUMP_LEN 2

struct span {
	uint64_t start, end;
};
struct at {
	uint64_t addr;
	size_t i;
};
struct pair {
	uint64_t stub;
	const struct dp_pc_pair *pair;
};
struct dp_code_index {
	struct span *span;      /* executable regions */
	struct at *site, *lead; /* sites by address; short jumps by the address that they lead to */
	struct pair *pair;
	size_t nspans, nsites, nleads, npairs;
};

_Static_assert(sizeof(((struct dp_placed *)0)->old_bytes) <= LONGEST, "sites that overlap are near");

uint64_t dp_placed_leads_to(const struct dp_placed *p)
{
	if (p->len != SHORT_JUMP_LEN || p->new_bytes[0] != SHORT_JUMP)
		return 0;
	return p->addr + SHORT_JUMP_LEN + (uint64_t)(int64_t)(int8_t)p->new_bytes[1];
}

/* ---- building -------------------------------------------------------------------------------------------------------------- */

static int by_start(const void *a, const void *b)
{
	const struct span *x = a, *y = b;
	return x->start < y->start ? -1 : x->start > y->start;
}

static int by_addr(const void *a, const void *b)
{
	const struct at *x = a, *y = b;
	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->i < y->i ? -1 : x->i > y->i;
}

/* Pairs are in memory in the order of their sites. */
static int by_stub(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;
	if (x->stub != y->stub)
		return x->stub < y->stub ? -1 : 1;
	return x->pair < y->pair ? -1 : x->pair > y->pair;
}

static bool add_spans(struct dp_code_index *x, const struct dp_installation *in)
{
	x->span = calloc(in->nregions + 1, sizeof(*x->span));
	if (!x->span)
		return false;
	for (size_t i = 0; i < in->nregions; i++) {
		const struct dp_region *r = &in->region[i];
		if (r->mapped && (r->prot & PROT_EXEC))
			x->span[x->nspans++] = (struct span){r->addr, r->addr + r->size};
	}
	qsort(x->span, x->nspans, sizeof(*x->span), by_start);
	return true;
}

static bool add_sites(struct dp_code_index *x, const struct dp_installation *in)
{
	x->site = calloc(in->nplaced + 1, sizeof(*x->site));
	x->lead = calloc(in->nplaced + 1, sizeof(*x->lead));
	if (!x->site || !x->lead)
		return false;
	for (size_t i = 0; i < in->nplaced; i++) {
		const uint64_t to = dp_placed_leads_to(&in->placed[i]);
		x->site[x->nsites++] = (struct at){in->placed[i].addr, i};
		if (to)
			x->lead[x->nleads++] = (struct at){to, i};
	}
	qsort(x->site, x->nsites, sizeof(*x->site), by_addr);
	qsort(x->lead, x->nleads, sizeof(*x->lead), by_addr);
	return true;
}

static bool add_pairs(struct dp_code_index *x, const struct dp_installation *in)
{
	size_t n = 0;
	for (size_t i = 0; i < in->nplaced; i++)
		n += in->placed[i].npairs;
	x->pair = calloc(n + 1, sizeof(*x->pair));
	if (!x->pair)
		return false;
	for (size_t i = 0; i < in->nplaced; i++)
		for (size_t k = 0; k < in->placed[i].npairs; k++)
			x->pair[x->npairs++] = (struct pair){in->placed[i].pair[k].stub, &in->placed[i].pair[k]};
	qsort(x->pair, x->npairs, sizeof(*x->pair), by_stub);
	return true;
}

struct dp_code_index *dp_code_index_create(const struct dp_installation *in)
{
	struct dp_code_index *x = calloc(1, sizeof(*x));
	if (x && add_spans(x, in) && add_sites(x, in) && add_pairs(x, in))
		return x;
	return dp_code_index_destroy(x);
}

struct dp_code_index *dp_code_index_destroy(struct dp_code_index *x)
{
	if (!x)
		return NULL;
	free(x->span);
	free(x->site);
	free(x->lead);
	free(x->pair);
	free(x);
	return NULL;
}

void dp_installation_index(struct dp_installation *in)
{
	dp_code_index_destroy(in->index);
	in->index = dp_code_index_create(in);
}

/* ---- code ------------------------------------------------------------------------------------------------------------------ */

bool dp_code_index_holds(const struct dp_code_index *x, uint64_t pc)
{
	size_t lo = 0, hi = x->nspans;
	while (lo < hi) {
		const size_t mid = (lo + hi) / 2;
		if (x->span[mid].end <= pc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < x->nspans && pc >= x->span[lo].start;
}

const struct dp_pc_pair *dp_code_index_pair(const struct dp_code_index *x, uint64_t pc)
{
	size_t lo = 0, hi = x->npairs;
	while (lo < hi) {
		const size_t mid = (lo + hi) / 2;
		if (x->pair[mid].stub < pc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < x->npairs && x->pair[lo].stub == pc ? x->pair[lo].pair : NULL;
}

/* ---- sites ----------------------------------------------------------------------------------------------------------------- */

static size_t first_from(const struct at *at, size_t n, uint64_t from)
{
	size_t lo = 0, hi = n;
	while (lo < hi) {
		const size_t mid = (lo + hi) / 2;
		if (at[mid].addr < from)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct dp_near dp_near(const struct dp_installation *in, uint64_t from, uint64_t end)
{
	const struct dp_code_index *x = in->index;
	return (struct dp_near){.in = in, .from = from, .end = end, .at = x ? first_from(x->site, x->nsites, from) : 0};
}

struct dp_near dp_near_leading(const struct dp_installation *in, uint64_t from, uint64_t end)
{
	const struct dp_code_index *x = in->index;
	return (struct dp_near){
	        .in = in, .from = from, .end = end, .at = x ? first_from(x->lead, x->nleads, from) : 0, .leading = true};
}

static size_t next_of_all(struct dp_near *n)
{
	while (n->at < n->in->nplaced) {
		const struct dp_placed *p = &n->in->placed[n->at++];
		const uint64_t addr = n->leading ? dp_placed_leads_to(p) : p->addr;
		if (addr >= n->from && addr < n->end)
			return n->at - 1;
	}
	return SIZE_MAX;
}

size_t dp_near_next(struct dp_near *n)
{
	const struct dp_code_index *x = n->in->index;
	if (!x)
		return next_of_all(n);
	const struct at *at = n->leading ? x->lead : x->site;
	const size_t most = n->leading ? x->nleads : x->nsites;
	return n->at < most && at[n->at].addr < n->end ? at[n->at++].i : SIZE_MAX;
}

struct dp_near dp_near_bytes(const struct dp_installation *in, uint64_t addr, size_t len)
{
	return dp_near(in, addr < LONGEST ? 0 : addr - LONGEST + 1, addr + len);
}

size_t dp_near_before(const struct dp_installation *in, uint64_t addr, size_t len, size_t i)
{
	struct dp_near near = dp_near_bytes(in, addr, len);
	size_t found = SIZE_MAX;
	for (size_t k; (k = dp_near_next(&near)) != SIZE_MAX;)
		if (k < i && (found == SIZE_MAX || k > found))
			found = k;
	return found;
}

size_t dp_near_after(const struct dp_installation *in, uint64_t addr, size_t len, size_t i)
{
	struct dp_near near = dp_near_bytes(in, addr, len);
	size_t found = SIZE_MAX;
	for (size_t k; (k = dp_near_next(&near)) != SIZE_MAX;)
		if (k > i && k < found)
			found = k;
	return found;
}
