/* SPDX-License-Identifier: MIT */
/* Copies an enumeration's names and values into one block, which outlives the debug information. */
#include "probes/expr/field/scope_fields.h"

#include <stdlib.h>
#include <string.h>

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

const struct dp_enumeration *dp_enumeration_of(const struct dp_ctype *type)
{
	const struct dp_enumerator *from;
	const size_t n = dp_ctype_enumerators(type, &from);
	size_t text = 0;
	struct block {
		struct dp_enumeration e;
		struct dp_enumerator item[];
	} * b;
	for (size_t i = 0; i < n; i++)
		text += strlen(from[i].name) + 1;
	if (!n || !(b = calloc(1, sizeof(*b) + n * sizeof(b->item[0]) + text)))
		return NULL;
	b->e = (struct dp_enumeration){.item = b->item, .n = n};
	char *at = (char *)(b->item + n);
	for (size_t i = 0; i < n; i++) {
		b->item[i] = (struct dp_enumerator){from[i].value, at};
		at = stpcpy(at, from[i].name) + 1;
	}
	b->e.flags = is_flags(&b->e);
	return &b->e;
}
