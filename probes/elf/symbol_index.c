/* SPDX-License-Identifier: MIT */
/*
 * Finds the function at an address. Symbols may share an address (aliases) and may be nested (assembly with inner labels). So the
 * index is sorted by address, the best alias first, and a running maximum of ends limits how far a search goes back.
 */
#include "probes/elf/symbols.h"

#include <stdlib.h>
#include <string.h>

/* Lower is better: functions before labels, sized before unsized, default version before hidden, exported before local, no
 * leading underscore before _names, strong before weak. */
static unsigned rank(const struct dp_symbol *s)
{
	unsigned weak = s->bind == STB_GLOBAL ? 0 : 1, local = s->bind == STB_LOCAL ? 4 : 0;
	return (s->type == STT_NOTYPE ? 32U : 0) | (s->size ? 0 : 16U) | (s->hidden ? 8U : 0) | local |
	       (s->name[0] == '_' ? 2U : 0) | weak;
}

static int compare(const void *a, const void *b)
{
	const struct dp_symbol *x = *(const struct dp_symbol *const *)a, *y = *(const struct dp_symbol *const *)b;
	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	unsigned rx = rank(x), ry = rank(y);
	if (rx != ry)
		return rx < ry ? -1 : 1;
	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	return strcmp(x->name, y->name);
}

void dp_symbol_index_build(struct dp_symbol_index *index, const struct dp_symbols *symbols)
{
	index->loaded = true;
	index->symbol = calloc(symbols->n + 1, sizeof(*index->symbol));
	index->reach = calloc(symbols->n + 1, sizeof(*index->reach));
	if (!index->symbol || !index->reach)
		return;
	for (size_t i = 0; i < symbols->n; i++)
		if (symbols->symbol[i].code)
			index->symbol[index->n++] = &symbols->symbol[i];
	qsort(index->symbol, index->n, sizeof(*index->symbol), compare);
	uint64_t reach = 0;
	for (size_t i = 0; i < index->n; i++) {
		const struct dp_symbol *s = index->symbol[i];
		uint64_t end = s->size > UINT64_MAX - s->value ? UINT64_MAX : s->value + s->size;
		reach = end > reach ? end : reach;
		index->reach[i] = reach;
	}
}

/* The innermost sized symbol that contains `value`; else the nearest label at or before it. */
const struct dp_symbol *dp_symbol_index_at(const struct dp_symbol_index *index, uint64_t value)
{
	size_t lo = 0, hi = index->n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (index->symbol[mid]->value <= value)
			lo = mid + 1;
		else
			hi = mid;
	}
	const struct dp_symbol *best = NULL, *label = NULL;
	for (size_t i = lo; i-- > 0;) {
		const struct dp_symbol *s = index->symbol[i];
		if (best && s->value != best->value)
			break;
		if (s->size && value - s->value < s->size)
			best = s;
		if (!s->size && !best && (!label || label->value == s->value))
			label = s;
		if (!best && index->reach[i] <= value && label && label->value != s->value)
			break;
		if (!best && index->reach[i] <= value && s->size)
			break;
	}
	return best ? best : label;
}

void dp_symbol_index_fini(struct dp_symbol_index *index)
{
	free(index->symbol);
	free(index->reach);
	*index = (struct dp_symbol_index){0};
}
