/* SPDX-License-Identifier: MIT */
/* Copies an enumeration's names and values into one block, which outlives the debug information. */
#include "probes/expr/field/scope_fields.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

enum { ENUMERATORS_MAX = 4096 };

/* Flags are single bits, one of them above the first two: more than a count from 0. */
static bool is_flags(const struct dp_enumeration *e)
{
	uint64_t highest = 0;
	for (size_t i = 0; i < e->n; i++) {
		const uint64_t v = e->item[i].value;
		if (v & (v - 1) && v)
			return false;
		highest = v > highest ? v : highest;
	}
	return highest > 2;
}

static size_t measure(Dwarf_Die *first, size_t *n)
{
	size_t text = 0;
	Dwarf_Die die = *first;
	*n = 0;
	do {
		const char *name = dwarf_diename(&die);
		if (name) {
			text += strlen(name) + 1;
			++*n;
		}
	} while (*n < ENUMERATORS_MAX && !dwarf_siblingof(&die, &die));
	return text;
}

const struct dp_enumeration *dp_enumeration_of(const struct dp_ctype *type)
{
	Dwarf_Die die = type->die, first;
	size_t n;
	if (!type->is_enum || !die.addr || dwarf_child(&die, &first))
		return NULL;
	const size_t text = measure(&first, &n);
	struct block {
		struct dp_enumeration e;
		struct dp_enumerator item[];
	} *b = calloc(1, sizeof(*b) + n * sizeof(b->item[0]) + text);
	if (!b)
		return NULL;
	char *at = (char *)(b->item + n);
	b->e.item = b->item;
	die = first;
	do {
		const char *name = dwarf_diename(&die);
		if (!name || b->e.n >= n || !dp_die_enumerator(&die, type->is_signed, &b->item[b->e.n].value))
			continue;
		b->item[b->e.n++].name = at;
		at = stpcpy(at, name) + 1;
	} while (!dwarf_siblingof(&die, &die));
	b->e.flags = is_flags(&b->e);
	return &b->e;
}
