/* SPDX-License-Identifier: MIT */
/* Finds the rule of a pc: in the slot's cache, else by two binary searches in the tables. All values read are checked. */
#include "agent/unwind/unwind_walk.h"

static const struct dp_unwind_row *row_at(const struct dp_walk *w, uint64_t row)
{
	return &w->rows[row < w->nrows ? row : 0];
}

static const struct dp_unwind_range *find_range(const struct dp_walk *w, uint64_t pc)
{
	const struct dp_unwind_range *r = (const struct dp_unwind_range *)(w->block + w->head->ranges_offset);
	uint32_t lo = 0, hi = w->head->nranges;

	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;

		if (r[mid].end <= pc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < w->head->nranges && pc >= r[lo].start ? &r[lo] : 0;
}

static uint32_t find_row(const struct dp_walk *w, const struct dp_unwind_range *r, uint64_t pc)
{
	const uint32_t *pcs = (const uint32_t *)(w->block + r->pc_offset);
	const uint16_t *rows = (const uint16_t *)(w->block + r->row_offset);
	uint64_t off = pc - r->start;
	uint32_t lo = 0, hi = r->n;

	if ((r->pc_offset | r->row_offset) & 3 || (uint64_t)r->pc_offset + (uint64_t)r->n * 4 > w->head->size ||
	    (uint64_t)r->row_offset + (uint64_t)r->n * 2 > w->head->size)
		return 0;
	while (lo < hi) { /* first entry above off */
		uint32_t mid = (lo + hi) / 2;

		if (pcs[mid] <= off)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? rows[lo - 1] : 0;
}

static const struct dp_unwind_row *lookup_tables(struct dp_walk *w, uint64_t pc)
{
	const struct dp_unwind_range *range = find_range(w, pc);
	uint64_t place = 2 * dp_walk_set(pc);
	uint32_t row;

	if (!range)
		return 0;
	row = find_row(w, range, pc);
	if (w->cache) {
		__atomic_store_n(&w->cache[place + 1], w->cache[place], __ATOMIC_RELAXED);
		__atomic_store_n(&w->cache[place], dp_walk_key(w, pc) << 16 | row, __ATOMIC_RELAXED);
	}
	return row_at(w, row);
}

const struct dp_unwind_row *dp_walk_lookup(struct dp_walk *w, uint32_t depth)
{
	uint64_t pc = w->pc - !w->exact, key = dp_walk_key(w, pc), entry;
	uint32_t place = 2 * (uint32_t)dp_walk_set(pc);

	if (!w->cache)
		return lookup_tables(w, pc);
	entry = dp_walk_entry(w, place);
	if (entry >> 16 != key)
		entry = dp_walk_entry(w, ++place);
	if (entry >> 16 != key)
		return lookup_tables(w, pc);
	*dp_walk_guess(w, w->place, depth) = (uint16_t)place;
	w->place = place;
	return row_at(w, entry & 0xffff);
}
