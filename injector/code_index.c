/* SPDX-License-Identifier: MIT */
#include "injector/code_index.h"

#include <stdlib.h>
#include <sys/mman.h>

#define NEAR 16u /* a site is no longer than that */

struct span {
	uint64_t start, end;
};
struct at {
	uint64_t addr;
	size_t i;
};
struct dp_code_index {
	struct span *span; /* executable regions, ascending */
	size_t nspans;
	const struct dp_pc_pair **hidden;
	size_t nhidden;
	bool *alone;
};

_Static_assert(sizeof(((struct dp_placed *)0)->old_bytes) <= NEAR, "sites that overlap are near");

static int by_start(const void *a, const void *b)
{
	const struct span *x = a, *y = b;
	return x->start < y->start ? -1 : x->start > y->start;
}

static int by_addr(const void *a, const void *b)
{
	const struct at *x = a, *y = b;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
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

static bool add_hidden(struct dp_code_index *x, const struct dp_pc_pair *pair)
{
	if (dp_code_index_holds(x, pair->stub))
		return true;
	const struct dp_pc_pair **grown = reallocarray(x->hidden, x->nhidden + 1, sizeof(*grown));
	if (!grown)
		return false;
	x->hidden = grown;
	x->hidden[x->nhidden++] = pair;
	return true;
}

static bool add_all_hidden(struct dp_code_index *x, const struct dp_installation *in)
{
	for (size_t i = 0; i < in->nplaced; i++)
		for (size_t k = 0; k < in->placed[i].npairs; k++)
			if (!add_hidden(x, &in->placed[i].pair[k]))
				return false;
	return true;
}

static bool find_alone(struct dp_code_index *x, const struct dp_installation *in)
{
	const size_t n = in->nplaced;
	struct at *at = calloc(n + 1, sizeof(*at));
	x->alone = calloc(n + 1, sizeof(*x->alone));
	for (size_t i = 0; at && i < n; i++)
		at[i] = (struct at){in->placed[i].addr, i};
	if (at)
		qsort(at, n, sizeof(*at), by_addr);
	for (size_t i = 0; at && x->alone && i < n; i++)
		x->alone[at[i].i] =
		        (!i || at[i].addr - at[i - 1].addr >= NEAR) && (i + 1 == n || at[i + 1].addr - at[i].addr >= NEAR);
	free(at);
	return at && x->alone;
}

struct dp_code_index *dp_code_index_create(const struct dp_installation *in)
{
	struct dp_code_index *x = calloc(1, sizeof(*x));
	if (x && add_spans(x, in) && add_all_hidden(x, in) && find_alone(x, in))
		return x;
	return dp_code_index_destroy(x);
}

struct dp_code_index *dp_code_index_destroy(struct dp_code_index *x)
{
	if (!x)
		return NULL;
	free(x->span);
	free(x->hidden);
	free(x->alone);
	free(x);
	return NULL;
}

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

const struct dp_pc_pair *dp_code_index_hidden(const struct dp_code_index *x, uint64_t pc)
{
	for (size_t i = 0; i < x->nhidden; i++)
		if (x->hidden[i]->stub == pc)
			return x->hidden[i];
	return NULL;
}

bool dp_code_index_alone(const struct dp_code_index *x, size_t i)
{
	return x->alone[i];
}
