/* SPDX-License-Identifier: MIT */
/* Bounds of functions without symbols, from .eh_frame. */
#include "probes/image/module.h"

#include <stdlib.h>

struct collection {
	struct dp_fdes *fdes;
	size_t capacity;
	const struct dp_elf *elf;
};

static bool collect(const struct dp_fde *fde, void *data)
{
	struct collection *c = data;
	if (!fde->size || !dp_elf_executable(c->elf, fde->start))
		return true;
	if (c->fdes->n == c->capacity) {
		size_t capacity = c->capacity ? 2 * c->capacity : 256;
		struct dp_fde *grown = realloc(c->fdes->fde, capacity * sizeof(*grown));
		if (!grown)
			return !(c->fdes->damaged = true);
		c->fdes->fde = grown;
		c->capacity = capacity;
	}
	c->fdes->fde[c->fdes->n++] = *fde;
	return true;
}

static int compare(const void *a, const void *b)
{
	const struct dp_fde *x = a, *y = b;
	return x->start < y->start ? -1 : x->start > y->start;
}

/* Linkers mostly write them in the order of the code. */
static bool is_sorted(const struct dp_fdes *fdes)
{
	for (size_t i = 1; i < fdes->n; i++)
		if (fdes->fde[i].start < fdes->fde[i - 1].start)
			return false;
	return true;
}

const struct dp_fdes *dp_module_fdes(struct dp_module *m)
{
	struct dp_fdes *fdes = &m->parsed->fdes;
	struct collection c = {.fdes = fdes, .elf = m->elf};
	struct dp_span s;
	bool exact;
	if (fdes->loaded)
		return fdes;
	fdes->loaded = true;
	if (!m->elf || !dp_elf_eh_frame(m->elf, &s, &exact))
		return fdes;
	if (!dp_eh_frame_walk(&s, exact, collect, &c))
		fdes->damaged = true;
	if (!is_sorted(fdes))
		qsort(fdes->fde, fdes->n, sizeof(*fdes->fde), compare);
	return fdes;
}

const struct dp_fde *dp_module_fde_at(struct dp_module *m, uint64_t vaddr)
{
	const struct dp_fdes *fdes = dp_module_fdes(m);
	size_t lo = 0, hi = fdes->n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (fdes->fde[mid].start <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && vaddr - fdes->fde[lo - 1].start < fdes->fde[lo - 1].size ? &fdes->fde[lo - 1] : NULL;
}
