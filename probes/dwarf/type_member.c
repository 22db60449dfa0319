/* SPDX-License-Identifier: MIT */
/* Finds members of records: both DWARF encodings of bit-fields, unnamed unions, base classes. */
#include "probes/dwarf/type.h"

#include <dwarf.h>
#include <string.h>

enum { NESTING_MAX = 16, MEMBERS_MAX = 4096 };

static void bit_field(Dwarf_Die *die, struct dp_member *m)
{
	uint64_t bits = 0, at, storage = m->type->size;
	if (!dp_die_unsigned(die, DW_AT_bit_size, &bits) || !bits || bits > 64)
		return;
	m->bits = bits;
	if (dp_die_unsigned(die, DW_AT_data_bit_offset, &at)) {
		m->offset = at / 8;
		m->bit = at % 8;
	} else if (dp_die_unsigned(die, DW_AT_bit_offset, &at)) {
		/* DWARF 3: counts from the most significant bit of a storage unit. */
		dp_die_unsigned(die, DW_AT_byte_size, &storage);
		if (at + bits <= storage * 8)
			m->bit = storage * 8 - at - bits;
	}
	m->offset += m->bit / 8;
	m->bit %= 8;
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

static bool member_of(struct dp_arena *arena, Dwarf_Die *die, struct dp_member *ret)
{
	const int tag = dwarf_tag(die);
	const bool base = tag == DW_TAG_inheritance;
	if (!base && (tag != DW_TAG_member || dp_die_flag(die, DW_AT_external) || dp_die_flag(die, DW_AT_declaration)))
		return false;
	*ret = (struct dp_member){.die = *die, .type = dp_ctype_of(arena, die), .name = base ? NULL : dwarf_diename(die)};
	if (!ret->type)
		return false;
	ret->is_virtual = !place_of(die, &ret->offset);
	if (ret->is_virtual && base)
		ret->base = *die;
	bit_field(die, ret);
	return true;
}

void dp_ctype_members(struct dp_arena *arena, const struct dp_ctype *record, bool (*each)(const struct dp_member *m, void *data),
                      void *data)
{
	Dwarf_Die die = record->die, child;
	struct dp_member m;
	unsigned n = 0;
	if (!die.addr || dwarf_child(&die, &child))
		return;
	do {
		if (member_of(arena, &child, &m) && !each(&m, data))
			return;
	} while (n++ < MEMBERS_MAX && !dwarf_siblingof(&child, &child));
}

struct search {
	struct dp_arena *arena;
	const char *name;
	struct dp_member *ret;
	struct dp_member at; /* the searched record within the outermost one */
	unsigned depth;
	bool found;
};

/* Combines a member with its outer one. A virtual base in a virtual base has no location that one computation gives. */
static struct dp_member inside(const struct dp_member *outer, const struct dp_member *m)
{
	struct dp_member r = *m;
	r.is_virtual |= outer->is_virtual;
	if (m->is_virtual && outer->is_virtual)
		r.base.addr = NULL;
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

static bool look(const struct dp_member *m, void *data)
{
	struct search *s = data;
	if (m->name && !strcmp(m->name, s->name)) {
		*s->ret = inside(&s->at, m);
		s->found = true;
		return false;
	}
	if ((m->name && *m->name) || m->type->kind != DP_CTYPE_RECORD || s->depth >= NESTING_MAX)
		return true;
	struct search inner = *s;
	inner.at = inside(&s->at, m);
	inner.depth++;
	dp_ctype_members(s->arena, m->type, look, &inner);
	s->found = inner.found;
	return !s->found;
}

bool dp_ctype_member(struct dp_arena *arena, const struct dp_ctype *record, const char *name, struct dp_member *ret)
{
	struct search s = {.arena = arena, .name = name, .ret = ret};
	dp_ctype_members(arena, record, look, &s);
	return s.found;
}
