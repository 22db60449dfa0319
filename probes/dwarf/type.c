/* SPDX-License-Identifier: MIT */
/* Makes types from debug information. It may be damaged, so every walk is bounded. */
#include "probes/dwarf/type.h"

#include <dwarf.h>
#include <string.h>

enum { DIMENSIONS_MAX = 16, STEPS_MAX = 4096, DEPTH_MAX = 64, SLOTS = 1024 };
#define SIZE_MAX_SANE (UINT64_C(1) << 40)

static bool is_word(uint64_t size)
{
	return size == 1 || size == 2 || size == 4 || size == 8;
}

/*
 * 16-byte floats are x87's or IEEE's quadruple precision. Only their names tell them apart, and with -mlong-double-128 one has
 * the other's name.
 */
static bool is_x87(struct dp_ctype *t)
{
	static const char *const names[] = {"long double", "_Float64x", "real(kind=10)"};
	Dwarf_Die unit;
	const char *producer = dwarf_diecu(&t->die, &unit, NULL, NULL)
	                               ? dwarf_formstring(dwarf_attr_integrate(&unit, DW_AT_producer, &(Dwarf_Attribute){0}))
	                               : NULL;
	for (size_t i = 0; t->name && i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(t->name, names[i]))
			return !producer || !strstr(producer, "-mlong-double-");
	return false;
}

const char *dp_ctype_unread(const struct dp_ctype *t)
{
	static const struct {
		const char *name, *why;
	} named[] = {
	        {"_Float128", "of type _Float128, which dynprobe does not support"},
	        {"__float128", "of type __float128, which dynprobe does not support"},
	        {"long double", "of type long double, of a size that dynprobe does not support"},
	};
	for (size_t i = 0; t->name && i < sizeof(named) / sizeof(*named); i++)
		if (!strcmp(t->name, named[i].name))
			return named[i].why;
	return "of a type that dynprobe does not support";
}

static void float_type(struct dp_ctype *t)
{
	t->kind = is_word(t->size) && t->size >= 4 ? DP_CTYPE_FLOAT : DP_CTYPE_OTHER;
	if (t->size == 16 && is_x87(t)) {
		t->kind = DP_CTYPE_LONG_DOUBLE;
		t->display = DP_DISPLAY_LONG_DOUBLE;
	}
}

static void base_type(struct dp_ctype *t)
{
	uint64_t encoding = 0;
	const bool is_char = t->name && !strcmp(t->name, "char");
	dp_die_unsigned(&t->die, DW_AT_encoding, &encoding);
	t->kind = is_word(t->size) ? DP_CTYPE_INT : DP_CTYPE_OTHER;
	switch (encoding) {
	case DW_ATE_boolean:
		t->is_bool = true;
		break;
	case DW_ATE_signed_char:
	case DW_ATE_unsigned_char:
		t->is_signed = encoding == DW_ATE_signed_char;
		t->is_text = is_char || (t->is_signed && t->name && !strcmp(t->name, "signed char"));
		__attribute__((fallthrough));
	case DW_ATE_UTF:
		t->is_char = true;
		break;
	case DW_ATE_signed:
	case DW_ATE_unsigned:
		t->is_signed = encoding == DW_ATE_signed;
		if (t->size == 16) {
			t->kind = DP_CTYPE_INT128;
			t->display = t->is_signed ? DP_DISPLAY_INT128 : DP_DISPLAY_UINT128;
		}
		break;
	case DW_ATE_address:
		break;
	case DW_ATE_float:
		float_type(t);
		break;
	case DW_ATE_complex_float:
		t->kind = t->size == 8 || t->size == 16 || t->size == 32 ? DP_CTYPE_COMPLEX : DP_CTYPE_OTHER;
		break;
	default:
		t->kind = DP_CTYPE_OTHER;
	}
}

static void enum_type(struct dp_ctype *t)
{
	t->is_enum = true;
	t->is_signed = dp_die_enumeration_is_signed(&t->die, &t->size);
	t->kind = is_word(t->size) ? DP_CTYPE_INT : DP_CTYPE_OTHER;
}

static void member_pointer_type(struct dp_ctype *t)
{
	Dwarf_Die to;
	const bool is_function = dp_die_type(&t->die, &to) && dp_die_peel(&to) && dwarf_tag(&to) == DW_TAG_subroutine_type;
	t->kind = is_function ? DP_CTYPE_METHOD : DP_CTYPE_MEMBER;
	t->size = is_function ? 16 : 8;
	t->is_signed = true;
}

/* The type's name: decltype(nullptr) in gcc, std::nullptr_t in clang. */
static bool is_nullptr(const struct dp_ctype *t)
{
	return t->name && strstr(t->name, "nullptr");
}

/* ---- arrays ---- */

static void set_array(struct dp_ctype *t, const struct dp_ctype *to, struct dp_dimension d)
{
	t->kind = DP_CTYPE_ARRAY;
	t->name = "array";
	t->to = to;
	t->count = d.n;
	t->is_sized = d.is_known;
	t->is_dynamic = d.is_dynamic || (to->kind == DP_CTYPE_ARRAY && to->is_dynamic);
	if (__builtin_mul_overflow(to->size, d.n, &t->size) || t->size > SIZE_MAX_SANE)
		t->size = t->count = 0;
}

/* Adds the texts. Types that refer to themselves have no `to` yet, but are declared. */
static struct dp_ctype *finish(struct dp_ctype *t)
{
	if (t->in->makes_texts) {
		const struct dp_ctype *base = t;
		Dwarf_Die die = t->whole;
		t->text = dp_ctype_format(t->in->arena, t);
		while (!base->whole.addr && base->to)
			base = base->to;
		t->base = base != t ? base->base : dp_type_format_base(t->in->arena, &die);
	}
	return t;
}

const struct dp_ctype *dp_ctype_array(struct dp_ctypes *in, const struct dp_ctype *element, uint64_t count)
{
	struct dp_ctype *t = dp_arena_alloc(in->arena, sizeof(*t));
	if (!t)
		return NULL;
	*t = (struct dp_ctype){.in = in};
	set_array(t, element, (struct dp_dimension){.n = count, .is_known = true});
	return finish(t);
}

/* One type for each dimension. The outermost dimension comes first and is the type itself. */
static void array_type(struct dp_ctype *t)
{
	struct dp_dimension d[DIMENSIONS_MAX] = {{0}};
	size_t n = 0;
	unsigned steps = 0;
	Dwarf_Die child;
	if (!dwarf_child(&t->die, &child))
		do {
			if (dwarf_tag(&child) == DW_TAG_subrange_type && n < DIMENSIONS_MAX)
				d[n++] = dp_die_dimension(&child);
		} while (steps++ < STEPS_MAX && !dwarf_siblingof(&child, &child));
	const struct dp_ctype *to = dp_ctype_of(t->in, &t->die);
	while (n > 1) {
		struct dp_ctype *inner = dp_arena_alloc(t->in->arena, sizeof(*inner));
		if (!inner)
			return;
		*inner = (struct dp_ctype){.in = t->in};
		set_array(inner, to, d[--n]);
		to = finish(inner);
	}
	set_array(t, to, d[0]);
}

/* ---- one type ---- */

static void fill(struct dp_ctype *t)
{
	dp_die_unsigned(&t->die, DW_AT_byte_size, &t->size);
	if (t->size > SIZE_MAX_SANE)
		t->size = 0;
	switch (dwarf_tag(&t->die)) {
	case DW_TAG_base_type:
		base_type(t);
		break;
	case DW_TAG_enumeration_type:
		enum_type(t);
		break;
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		t->is_reference = true;
		__attribute__((fallthrough));
	case DW_TAG_pointer_type:
		t->kind = DP_CTYPE_POINTER;
		t->size = 8;
		break;
	case DW_TAG_ptr_to_member_type:
		member_pointer_type(t);
		break;
	case DW_TAG_array_type:
		array_type(t);
		break;
	case DW_TAG_union_type:
		t->is_union = true;
		__attribute__((fallthrough));
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
		t->kind = DP_CTYPE_RECORD;
		/* Only its own attribute counts: in a type unit the definition refers to a declaration. */
		t->is_incomplete = dwarf_hasattr(&t->die, DW_AT_declaration);
		break;
	case DW_TAG_subroutine_type:
		t->kind = DP_CTYPE_FUNCTION;
		t->size = 1;
		break;
	case DW_TAG_unspecified_type:
		t->kind = is_nullptr(t) ? DP_CTYPE_POINTER : DP_CTYPE_VOID;
		t->size = t->kind == DP_CTYPE_POINTER ? 8 : 0;
		break;
	default:
		t->kind = DP_CTYPE_OTHER;
	}
}

static struct dp_ctype **slot_of(struct dp_ctypes *in, const void *key)
{
	if (!in->slot)
		in->slot = dp_arena_alloc(in->arena, SLOTS * sizeof(struct dp_ctype *));
	return in->slot ? &in->slot[((uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15)) >> 52 & (SLOTS - 1)] : NULL;
}

const struct dp_ctype *dp_ctype_from(struct dp_ctypes *in, Dwarf_Die *die)
{
	struct dp_ctype **slot = slot_of(in, die->addr), *t = slot ? *slot : NULL;
	while (t && t->whole.addr != die->addr)
		t = t->chain;
	if (t)
		return t;
	t = slot && in->depth < DEPTH_MAX ? dp_arena_alloc(in->arena, sizeof(*t)) : NULL;
	if (!t)
		return &dp_ctype_void;
	/* Enter it before its parts, which may refer back to it. */
	*t = (struct dp_ctype){.in = in, .whole = *die, .die = *die, .text = "", .base = "", .chain = *slot};
	*slot = t;
	in->depth++;
	t->name = "void";
	if (dp_die_peel(&t->die)) {
		t->name = dwarf_diename(&t->die);
		fill(t);
	}
	in->depth--;
	return finish(t);
}

const struct dp_ctype *dp_ctype_of(struct dp_ctypes *in, Dwarf_Die *die)
{
	Dwarf_Die type;
	return dp_die_type(die, &type) ? dp_ctype_from(in, &type) : &dp_ctype_void;
}

const struct dp_ctype *dp_ctype_to(const struct dp_ctype *type)
{
	struct dp_ctype *own = (struct dp_ctype *)type;
	Dwarf_Die die = type->die;
	if (!type->to && type->in)
		own->to = die.addr ? dp_ctype_of(type->in, &die) : &dp_ctype_void;
	return type->to ? type->to : &dp_ctype_void;
}

const struct dp_ctype *dp_ctype_pointer(struct dp_ctypes *in, const struct dp_ctype *to)
{
	struct dp_ctype *t = to->pointer ? NULL : dp_arena_alloc(in->arena, sizeof(*t));
	if (!t)
		return to->pointer;
	*t = (struct dp_ctype){.kind = DP_CTYPE_POINTER, .size = 8, .to = to, .in = in, .name = "pointer"};
	if (to->in == in)
		((struct dp_ctype *)to)->pointer = t;
	return finish(t);
}
