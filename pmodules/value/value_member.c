/* SPDX-License-Identifier: MIT */
/*
 * Pointers to members, in the Itanium C++ ABI (2.3). Data: the offset in the object, or -1. Functions: an address, or 1 + the
 * offset in the vtable; then the adjustment of `this`.
 */
#include "pmodules/value/value_show.h"
#include "probes/dwarf/type.h"
#include "probes/elf/demangle.h"
#include "probes/image/function/describe.h"
#include "probes/image/module.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 16, STEPS_MAX = 1 << 16, TABLE_ENTRY = 8 };

struct member_name {
	const struct dp_ctype *class;
	const char *text;
};

static const struct dp_ctype *class_of(struct dp_debug_ctx *w, const struct dp_ctype *t)
{
	Dwarf_Die die = t->die, class;
	Dwarf_Attribute attr;
	if (!dwarf_attr(&die, DW_AT_containing_type, &attr) || !dwarf_formref_die(&attr, &class))
		return NULL;
	return dp_ctype_complete_near(w, dp_ctype_from(t->in, &class));
}

/* ---- data --------------------------------------------------------------------------------------------------------------- */

static bool member_at(struct dp_debug_ctx *w, const struct dp_ctype *class, uint64_t offset, unsigned depth,
                      struct member_name *ret)
{
	const struct dp_member *m;
	const size_t n = dp_ctype_members(class, &m);
	for (size_t i = 0; i < n && depth < DEPTH_MAX; i++) {
		const uint64_t size = m[i].type->size;
		if (m[i].is_virtual || m[i].bits || offset < m[i].offset)
			continue;
		if (m[i].is_base && offset - m[i].offset < size &&
		    member_at(w, dp_ctype_complete_near(w, m[i].type), offset - m[i].offset, depth + 1, ret))
			return true;
		if (m[i].is_base || offset != m[i].offset || !m[i].name)
			continue;
		*ret = (struct member_name){class, m[i].name};
		return true;
	}
	return false;
}

void dp_show_member(struct dp_show *x, struct dp_value *v, struct dp_snap_variable *into)
{
	const struct dp_ctype *class = class_of(x->w, v->type);
	struct member_name name;
	if (into->number == UINT64_MAX)
		into->text = "NULL";
	else if (class && member_at(x->w, class, into->number, 0, &name))
		into->text = dp_arena_printf(&x->s->arena, "&%s::%s", name.class->base, name.text);
}

/* ---- functions ---------------------------------------------------------------------------------------------------------- */

static bool is_entry(Dwarf_Die *function, uint64_t index)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;
	Dwarf_Word plain;
	if (!dwarf_attr_integrate(function, DW_AT_vtable_elem_location, &attr))
		return false;
	if (!dwarf_formudata(&attr, &plain))
		return plain == index;
	if (dwarf_getlocation(&attr, &ops, &n) || n != 1)
		return false;
	if (ops[0].atom >= DW_OP_lit0 && ops[0].atom <= DW_OP_lit31)
		return ops[0].atom - (unsigned)DW_OP_lit0 == index;
	return ops[0].atom >= DW_OP_const1u && ops[0].atom <= DW_OP_consts && ops[0].number == index;
}

/* The class's own function for that vtable index. */
static const char *own_virtual(const struct dp_ctype *class, uint64_t index)
{
	Dwarf_Die die = class->die, child;
	Dwarf_Attribute attr;
	unsigned steps = 0;
	if (!die.addr || dwarf_child(&die, &child))
		return NULL;
	do {
		if (dwarf_tag(&child) == DW_TAG_subprogram && is_entry(&child, index))
			return dwarf_attr_integrate(&child, DW_AT_linkage_name, &attr) ? dwarf_formstring(&attr) : NULL;
	} while (steps++ < STEPS_MAX && !dwarf_siblingof(&child, &child));
	return NULL;
}

/* Searches the base at offset `shift`, to which `this` is adjusted. */
static const char *find_virtual(struct dp_debug_ctx *w, const struct dp_ctype *class, uint64_t index, uint64_t shift,
                                unsigned depth)
{
	const struct dp_member *m;
	const char *name = shift ? NULL : own_virtual(class, index);
	const size_t n = name ? 0 : dp_ctype_members(class, &m);
	for (size_t i = 0; i < n && !name && depth < DEPTH_MAX; i++)
		if (m[i].is_base && shift >= m[i].offset && shift - m[i].offset < (m[i].type->size ? m[i].type->size : 1))
			name = find_virtual(w, dp_ctype_complete_near(w, m[i].type), index, shift - m[i].offset, depth + 1);
	return name;
}

static const char *readable(struct dp_arena *a, const char *prefix, const char *symbol)
{
	char *name = dp_demangle(symbol, true);
	const char *text = dp_arena_printf(a, "%s%s", prefix, name ? name : symbol);
	free(name);
	return text;
}

static const char *name_of(struct dp_show *x, const struct dp_value *v, uint64_t at, uint64_t shift)
{
	struct dp_function fn;
	struct dp_arena *a = &x->s->arena;
	if (at & 1) {
		const struct dp_ctype *class = class_of(x->w, v->type);
		const uint64_t index = (at - 1) / TABLE_ENTRY;
		const char *name = class ? find_virtual(x->w, class, index, shift, 0) : NULL;
		return name ? readable(a, "&virtual ", name)
		            : dp_arena_printf(a, "&virtual table offset %llu", (unsigned long long)at - 1);
	}
	if (!dp_image_function_at(x->w->image, dp_addr_of(at), &fn) || !*fn.name)
		return dp_arena_printf(a, "0x%llx", (unsigned long long)at);
	return readable(a, "", fn.name);
}

void dp_show_method(struct dp_show *x, struct dp_value *v, struct dp_snap_variable *into)
{
	uint64_t raw[2];
	const char *why = NULL;
	if (!dp_value_fetch(v, raw, sizeof(raw), &why)) {
		into->state = v->where == DP_VALUE_MEMORY ? DP_VAR_UNREADABLE : DP_VAR_ABSENT;
		into->why = dp_snapshot_text(x->s, why);
		return;
	}
	into->number = raw[0];
	into->text = raw[0] ? name_of(x, v, raw[0], raw[1]) : "NULL";
	if (raw[0] && raw[1] && into->text && strncmp(into->text, "&virtual ", 9))
		into->text = dp_arena_printf(&x->s->arena, "%s, this adjustment %lld", into->text, (long long)raw[1]);
}
