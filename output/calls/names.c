/* SPDX-License-Identifier: MIT */
#include "output/calls/names.h"

#include "output/format/put.h"

#include <stdbool.h>

const struct dp_call_names *dp_call_names_find(const char *set, size_t len)
{
	for (size_t i = 0; i < dp_call_nnames; i++)
		if (strlen(dp_call_names[i].set) == len && !memcmp(dp_call_names[i].set, set, len))
			return &dp_call_names[i];
	return NULL;
}

/* Headers write some values as int, and some arguments are 32 bits of a register. */
static bool is_same(uint64_t name, uint64_t v)
{
	return name == v || (((v >> 32) == 0 || (v >> 31) == UINT64_C(0x1ffffffff)) && (uint32_t)name == (uint32_t)v);
}

const char *dp_call_name_of(const struct dp_call_names *names, uint64_t v)
{
	for (size_t i = 0; i < names->n; i++)
		if (is_same(names->item[i].value, v))
			return names->item[i].name;
	return NULL;
}

/* Of the flags in `rest`, the one that has its lowest bit and the most others. */
static const struct dp_call_name *next_flag(const struct dp_call_names *names, uint64_t rest)
{
	const struct dp_call_name *best = NULL;
	const uint64_t lowest = rest & -rest;
	for (size_t i = 0; i < names->n; i++) {
		const uint64_t v = (uint32_t)names->item[i].value == names->item[i].value ? names->item[i].value
		                                                                          : names->item[i].value & UINT32_MAX;
		if (v && (v & -v) == lowest && (v & rest) == v &&
		    (!best || __builtin_popcountll(v) > __builtin_popcountll(best->value & UINT32_MAX)))
			best = &names->item[i];
	}
	return best;
}

static void put_part(struct dp_buf *b, size_t start, const char *text)
{
	if (b->len > start)
		dp_put_str(b, "|");
	dp_put_str(b, text);
}

/* Appends the names of the flags and returns the bits that have none. */
static uint64_t put_flags(struct dp_buf *b, const struct dp_call_names *names, uint64_t rest, size_t start)
{
	uint64_t unknown = 0;
	while (rest) {
		const struct dp_call_name *flag = next_flag(names, rest);
		const uint64_t bits = flag ? flag->value & UINT32_MAX : rest & -rest;
		if (flag)
			put_part(b, start, flag->name);
		else
			unknown |= bits;
		rest &= ~bits;
	}
	return unknown;
}

static bool put_value(struct dp_buf *b, const struct dp_call_names *names, uint64_t v)
{
	const char *name = dp_call_name_of(names, v);
	if (name)
		dp_put_str(b, name);
	return name;
}

bool dp_put_call_names(struct dp_buf *b, const struct dp_call_names *names, uint64_t v)
{
	const size_t start = b->len;
	if (names->mask == UINT64_MAX || (!v && names->mask == 0))
		return put_value(b, names, v);
	uint64_t unknown = names->mask && !put_value(b, names, v & names->mask) ? v & names->mask : 0;
	unknown |= put_flags(b, names, v & ~names->mask, start);
	if (b->len == start)
		return false;
	if (unknown) {
		put_part(b, start, "");
		dp_put_hex(b, unknown);
	}
	return true;
}
