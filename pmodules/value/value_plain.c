/* SPDX-License-Identifier: MIT */
/* Fast path for the most common variables: numbers in memory that are parts of an object. */
#include "pmodules/value/value_show.h"

#include <string.h>

static bool is_number(const struct dp_ctype *t)
{
	return t->kind == DP_CTYPE_FLOAT || (t->kind == DP_CTYPE_INT && !t->is_enum);
}

static uint64_t load_int(const uint8_t *at, uint64_t size, bool is_signed)
{
	uint64_t v;
	uint32_t word;
	uint16_t half;
	switch (size) {
	case 1:
		return is_signed ? (uint64_t)(int64_t)(int8_t)*at : *at;
	case 2:
		memcpy(&half, at, sizeof(half));
		return is_signed ? (uint64_t)(int64_t)(int16_t)half : half;
	case 4:
		memcpy(&word, at, sizeof(word));
		return is_signed ? (uint64_t)(int64_t)(int32_t)word : word;
	default:
		memcpy(&v, at, sizeof(v));
		return v;
	}
}

static void load_real(const uint8_t *at, struct dp_snap_variable *into)
{
	float f;
	if (into->kind == DP_VAR_DBL) {
		memcpy(&into->real, at, sizeof(into->real));
		return;
	}
	memcpy(&f, at, sizeof(f));
	into->real = (double)f;
}

bool dp_show_plain(struct dp_show *x, const struct dp_value *of, const struct dp_ctype *t, uint64_t offset,
                   struct dp_snap_variable *into)
{
	bool late = of->late;
	const bool plain = !x->keeps_values && of->where == DP_VALUE_MEMORY && is_number(t);
	const uint8_t *bytes = plain ? dp_debug_ctx_at(x->w, of->addr + offset, t->size, &late) : NULL;
	if (!bytes)
		return false;
	dp_show_type(x, t, into);
	into->size = t->size;
	into->address = of->addr + offset;
	into->is_late = late;
	into->is_shared = into->owner->is_shared;
	if (t->kind == DP_CTYPE_FLOAT) {
		into->kind = t->size == 4 ? DP_VAR_FLT : DP_VAR_DBL;
		load_real(bytes, into);
		return true;
	}
	into->kind = t->is_signed || t->is_bool || t->is_char ? DP_VAR_LL : DP_VAR_ULL;
	into->is_bool = t->is_bool;
	into->is_char = t->is_char;
	into->number = load_int(bytes, t->size, t->is_signed);
	return true;
}
