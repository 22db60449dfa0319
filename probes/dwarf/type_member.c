/* SPDX-License-Identifier: MIT */
/* Finds members of records: both DWARF encodings of bit-fields, unnamed unions, base classes. */
#include "probes/dwarf/type.h"

#include <dwarf.h>
#include <string.h>

enum { NESTING_MAX = 16, MEMBERS_MAX = 4096, ENUMERATORS_MAX = 4096 };

static void bit_field(Dwarf_Die *die, struct dp_member *m)
{
	uint64_t bits = 0, at, first = 0, storage = m->type->size;
	if (!dp_die_unsigned(die, DW_AT_bit_size, &bits) || !bits || bits > 64)
		return;
	m->bits = (uint8_t)bits;
	if (dp_die_unsigned(die, DW_AT_data_bit_offset, &at)) {
		m->offset = 0;
		first = at;
	} else if (dp_die_unsigned(die, DW_AT_bit_offset, &at)) {
		/* DWARF 3: counts from the most significant bit of a storage unit. */
		dp_die_unsigned(die, DW_AT_byte_size, &storage);
		if (at + bits <= storage * 8)
			first = storage * 8 - at - bits;
	}
	m->offset += first / 8;
	m->bit = first % 8;
}

/* The location is a number. An expression belongs to a virtual base (or in DWARF 2 is plus_uconst). */
static bool place_of(Dwarf_Die *die, uint64_t *ret)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	Dwarf_Word value;
	size_t n;
	if (!dwarf_attr_integrate(die, DW_AT_data_member_location, &attr)) {
		*ret = 0;
		return true;
	}
	if (!dwarf_formudata(&attr, &value)) {
		*ret = value;
		return true;
	}
	if (dwarf_getlocation(&attr, &ops, &n) || n != 1 || ops[0].atom != DW_OP_plus_uconst)
		return false;
	*ret = ops[0].number;
	return true;
}

static void fill(struct dp_ctypes *in, Dwarf_Die *die, bool is_base, struct dp_member *m)
{
	const char *name = is_base ? NULL : dwarf_diename(die);
	*m = (struct dp_member){.name = name && *name ? name : NULL,
	                        .type = dp_ctype_of(in, die),
	                        .die = *die,
	                        .is_base = is_base,
	                        .is_artificial = dp_die_flag(die, DW_AT_artificial)};
	m->is_virtual = !place_of(die, &m->offset);
	m->base = m->is_virtual && is_base ? m : NULL;
	bit_field(die, m);
}

/* Fills in the members, or only counts them if `ret` is NULL. */
static uint32_t walk(const struct dp_ctype *record, struct dp_member *ret)
{
	Dwarf_Die die = record->die, child;
	uint32_t n = 0;
	unsigned steps = 0;
	if (!die.addr || dwarf_child(&die, &child))
		return 0;
	do {
		const int tag = dwarf_tag(&child);
		const bool is_base = tag == DW_TAG_inheritance;
		if (!is_base &&
		    (tag != DW_TAG_member || dp_die_flag(&child, DW_AT_external) || dp_die_flag(&child, DW_AT_declaration)))
			continue;
		if (ret)
			fill(record->in, &child, is_base, &ret[n]);
		n++;
	} while (steps++ < MEMBERS_MAX && !dwarf_siblingof(&child, &child));
	return n;
}

size_t dp_ctype_members(const struct dp_ctype *record, const struct dp_member **ret)
{
	struct dp_ctype *own = (struct dp_ctype *)record;
	if (record->kind == DP_CTYPE_RECORD && !record->members_known) {
		const uint32_t n = walk(record, NULL);
		struct dp_member *m = n ? dp_arena_alloc(record->in->arena, n * sizeof(*m)) : NULL;
		own->members_known = true;
		own->member = m;
		own->nmembers = m ? walk(record, m) : 0;
	}
	*ret = record->member;
	return record->nmembers;
}

struct search {
	const char *name;
	struct dp_member *ret;
	struct dp_member at; /* the searched record within the outermost one */
	unsigned depth;
};

/* Combines a member with its outer one. A virtual base in a virtual base has no location that one computation gives. */
static struct dp_member inside(const struct dp_member *outer, const struct dp_member *m)
{
	struct dp_member r = *m;
	r.is_virtual |= outer->is_virtual;
	if (m->is_virtual && outer->is_virtual)
		r.base = NULL;
	else if (m->is_virtual)
		r.before += outer->offset;
	else
		r.offset += outer->offset;
	if (!m->is_virtual && outer->is_virtual) {
		r.before = outer->before;
		r.base = outer->base;
	}
	return r;
}

static bool search(const struct search *s, const struct dp_ctype *record)
{
	const struct dp_member *m;
	const size_t n = dp_ctype_members(record, &m);
	for (size_t i = 0; i < n; i++) {
		const struct search inner = {s->name, s->ret, inside(&s->at, &m[i]), s->depth + 1};
		if (m[i].name && !strcmp(m[i].name, s->name)) {
			*s->ret = inner.at;
			return true;
		}
		if (!m[i].name && s->depth < NESTING_MAX && search(&inner, m[i].type))
			return true;
	}
	return false;
}

bool dp_ctype_member(const struct dp_ctype *record, const char *name, struct dp_member *ret)
{
	return search(&(struct search){.name = name, .ret = ret}, record);
}

/* ---- enumerators ---- */

size_t dp_ctype_enumerators(const struct dp_ctype *type, const struct dp_enumerator **ret)
{
	struct dp_ctype *own = (struct dp_ctype *)type;
	Dwarf_Die die = type->die, first, child;
	if (type->is_enum && !type->enumerators_known && die.addr && !dwarf_child(&die, &first)) {
		uint32_t n = 0;
		for (child = first; n++ < ENUMERATORS_MAX && !dwarf_siblingof(&child, &child);)
			;
		struct dp_enumerator *x = dp_arena_alloc(type->in->arena, n * sizeof(*x));
		own->enumerators_known = true;
		own->enumerator = x;
		child = first;
		do {
			const char *name = x && dwarf_tag(&child) == DW_TAG_enumerator ? dwarf_diename(&child) : NULL;
			if (name && dp_die_enumerator(&child, type->is_signed, &x->value)) {
				x++->name = name;
				own->nenumerators++;
			}
		} while (--n && !dwarf_siblingof(&child, &child));
	}
	*ret = type->enumerator;
	return type->nenumerators;
}
