/* SPDX-License-Identifier: MIT */
/*
 * DWARF has no strings that know their length. Two shapes are strings: a pointer to bytes with a length beside it and nothing
 * else, and the classes of libstdc++ and Rust, whose members are nested. Names decide where types do not: bytes that are not
 * `char` are text only beside a "len", so that {buf, size} of binary data stays a struct.
 */
#include "probes/dwarf/type_counted.h"

#include <string.h>

enum { NESTING = 8 };

static bool is_octet(const struct dp_ctype *t)
{
	return t->kind == DP_CTYPE_INT && t->size == 1 && !t->is_bool && !t->is_enum;
}

static bool is_data(const struct dp_ctype *t)
{
	return t->kind == DP_CTYPE_POINTER && !t->is_reference && is_octet(dp_ctype_to(t));
}

static bool is_length(const struct dp_member *m)
{
	const struct dp_ctype *t = m->type;
	return t->kind == DP_CTYPE_INT && (t->size == 4 || t->size == 8) && !t->is_bool && !t->is_enum && !m->bits;
}

static bool names_length(const char *name, bool is_text)
{
	static const char *const others[] = {"size", "count", "n", "cnt", "nbytes"};
	if (strstr(name, "len"))
		return true;
	for (size_t i = 0; is_text && i < sizeof(others) / sizeof(*others); i++)
		if (!strcmp(name, others[i]))
			return true;
	return false;
}

static bool take(const struct dp_member *data, const struct dp_member *length, struct dp_counted *ret)
{
	if (!is_data(data->type) || !is_length(length) || data->is_virtual || length->is_virtual)
		return false;
	*ret = (struct dp_counted){.data = data->offset,
	                           .length = length->offset,
	                           .size = (uint8_t)length->type->size,
	                           .is_signed = length->type->is_signed};
	return true;
}

/* {data, len} in any order. Rust's slices have the same members as its &str. */
static bool is_pair(const struct dp_ctype *record, struct dp_counted *ret)
{
	const struct dp_member *m;
	if (dp_ctype_members(record, &m) != 2 || !m[0].name || !m[1].name || (record->name && strchr(record->name, '[')))
		return false;
	const struct dp_member *data = is_data(m[0].type) ? &m[0] : &m[1], *length = data == &m[0] ? &m[1] : &m[0];
	return take(data, length, ret) && names_length(length->name, dp_ctype_to(data->type)->is_text);
}

static bool is_libstdcxx(const struct dp_ctype *record, struct dp_counted *ret)
{
	struct dp_member holder, data, length;
	if (!dp_ctype_member(record, "_M_string_length", &length) || !dp_ctype_member(record, "_M_dataplus", &holder) ||
	    holder.is_virtual || holder.type->kind != DP_CTYPE_RECORD || !dp_ctype_member(holder.type, "_M_p", &data))
		return false;
	data.offset += holder.offset;
	return take(&data, &length, ret);
}

/* The first pointer to bytes in a Vec's buffer, below wrappers that depend on the compiler's version. */
static bool find_data(const struct dp_ctype *record, unsigned depth, uint64_t offset, struct dp_member *ret)
{
	const struct dp_member *m;
	const size_t n = record->kind == DP_CTYPE_RECORD && depth < NESTING ? dp_ctype_members(record, &m) : 0;
	for (size_t i = 0; i < n; i++) {
		if (is_data(m[i].type)) {
			*ret = m[i];
			ret->offset += offset;
			return true;
		}
		if (find_data(m[i].type, depth + 1, offset + m[i].offset, ret))
			return true;
	}
	return false;
}

static bool is_rust(const struct dp_ctype *record, struct dp_counted *ret)
{
	struct dp_member vec, buf, length, data;
	const struct dp_member *all;
	if (!record->name || strcmp(record->name, "String") != 0 || dp_ctype_members(record, &all) != 1 ||
	    !dp_ctype_member(record, "vec", &vec) || vec.type->kind != DP_CTYPE_RECORD ||
	    !dp_ctype_member(vec.type, "buf", &buf) || !dp_ctype_member(vec.type, "len", &length) ||
	    !find_data(buf.type, 0, vec.offset + buf.offset, &data))
		return false;
	length.offset += vec.offset;
	return take(&data, &length, ret);
}

bool dp_ctype_counted(const struct dp_ctype *record, struct dp_counted *ret)
{
	return record->kind == DP_CTYPE_RECORD && !record->is_union &&
	       (is_pair(record, ret) || is_libstdcxx(record, ret) || is_rust(record, ret));
}
