/* SPDX-License-Identifier: MIT */
/* Types as nodes, made once from debug information. That may be damaged, so every walk is bounded. */
#include "pmodules/value/debug_ctx_internal.h"
#include "probes/dwarf/type.h"

#include <dwarf.h>
#include <string.h>

enum { DEPTH_MAX = 64, DIMENSIONS_MAX = 16, NAMES_MAX = 4096, MEMBERS_MAX = 4096 };
#define SIZE_MAX_SANE (UINT64_C(1) << 40)

static struct dp_stype **slot_of(struct dp_debug_ctx *w, const void *key)
{
	return &w->type[((uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15)) >> 52 & (DP_DEBUG_CTX_SLOTS - 1)];
}

const struct dp_stype *dp_stype_void(struct dp_debug_ctx *w)
{
	if (!w->none && (w->none = dp_arena_alloc(&w->arena, sizeof(*w->none))))
		*w->none = (struct dp_stype){.kind = DP_STYPE_VOID, .name.text = "void", .base.text = "void"};
	return w->none;
}

/* ---- DIEs ----------------------------------------------------------------------------------------------------------------- */

static bool is_word(uint64_t size)
{
	return size == 1 || size == 2 || size == 4 || size == 8;
}

static void base_type(struct dp_stype *t)
{
	uint64_t encoding = 0;
	const char *name = dwarf_diename(&t->die);
	dp_die_unsigned(&t->die, DW_AT_encoding, &encoding);
	t->kind = DP_STYPE_INT;
	switch (encoding) {
	case DW_ATE_boolean:
		t->is_bool = true;
		break;
	case DW_ATE_signed_char:
	case DW_ATE_unsigned_char:
		t->is_signed = encoding == DW_ATE_signed_char;
		t->is_char = true;
		break;
	case DW_ATE_UTF:
		t->is_char = true;
		break;
	case DW_ATE_signed:
		t->is_signed = true;
		break;
	case DW_ATE_unsigned:
	case DW_ATE_address:
		break;
	case DW_ATE_float:
		t->kind = t->size == 4 || t->size == 8 || (t->size == 16 && name && strstr(name, "long double")) ? DP_STYPE_FLOAT
		                                                                                                 : DP_STYPE_OTHER;
		return;
	case DW_ATE_complex_float:
		t->kind = t->size == 8 || t->size == 16 || t->size == 32 ? DP_STYPE_COMPLEX : DP_STYPE_OTHER;
		return;
	default:
		t->kind = DP_STYPE_OTHER;
	}
	t->is_wide = t->size == 16;
	if (!is_word(t->size) && !t->is_wide)
		t->kind = DP_STYPE_OTHER;
}

static void enum_type(struct dp_stype *t)
{
	t->kind = DP_STYPE_ENUM;
	t->is_signed = dp_die_enumeration_is_signed(&t->die, &t->size);
	if (!is_word(t->size))
		t->kind = DP_STYPE_OTHER;
}

/* ---- arrays ---------------------------------------------------------------------------------------------------------------- */

static void set_array(struct dp_stype *t, const struct dp_stype *to, struct dp_dimension d)
{
	t->kind = DP_STYPE_ARRAY;
	t->to = to;
	t->count = d.n;
	t->is_sized = d.is_known;
	t->is_dynamic = d.is_dynamic || (to->kind == DP_STYPE_ARRAY && to->is_dynamic);
	if (__builtin_mul_overflow(to->size, d.n, &t->size) || t->size > SIZE_MAX_SANE)
		t->size = t->count = 0;
}

/* One node for each dimension. The outermost dimension comes first and is the type itself. */
static void array_type(struct dp_debug_ctx *w, struct dp_stype *t)
{
	struct dp_dimension d[DIMENSIONS_MAX];
	uint64_t count[DIMENSIONS_MAX];
	size_t n = 0;
	unsigned steps = 0;
	Dwarf_Die child, element = {0};
	if (!dwarf_child(&t->die, &child))
		do {
			if (dwarf_tag(&child) == DW_TAG_subrange_type && n < DIMENSIONS_MAX)
				d[n++] = dp_die_dimension(&child);
		} while (steps++ < MEMBERS_MAX && !dwarf_siblingof(&child, &child));
	if (!n)
		d[n++] = (struct dp_dimension){0};
	for (size_t i = 0; i < n; i++)
		count[i] = d[i].n;
	const struct dp_stype *to = dp_die_type(&t->die, &element) ? dp_stype_from(w, t->module, &element) : dp_stype_void(w);
	for (size_t i = n; to && i-- > 1;) {
		struct dp_stype *inner = dp_arena_alloc(&w->arena, sizeof(*inner));
		if (!inner)
			return;
		inner->module = t->module;
		set_array(inner, to, d[i]);
		inner->name.text = dp_type_format_array(&w->arena, &element, count + i, n - i);
		inner->base.text = element.addr ? dp_type_format_base(&w->arena, &element) : "void";
		to = inner;
	}
	if (to)
		set_array(t, to, d[0]);
}

const struct dp_stype *dp_stype_array(struct dp_debug_ctx *w, const struct dp_stype *element, uint64_t count)
{
	struct dp_stype *t = dp_arena_alloc(&w->arena, sizeof(*t));
	Dwarf_Die die = element->whole;
	if (!t)
		return NULL;
	*t = (struct dp_stype){.module = element->module, .base = element->base, .is_sized = true};
	set_array(t, element, (struct dp_dimension){.n = count, .is_known = true});
	t->name.text = die.addr ? dp_type_format_array(&w->arena, &die, &count, 1)
	                        : dp_arena_printf(&w->arena, "%s [%llu]", element->name.text, (unsigned long long)count);
	t->base.of = 0;
	return t->name.text ? t : NULL;
}

static void member_pointer_type(struct dp_stype *t)
{
	Dwarf_Die to;
	const bool is_function = dp_die_type(&t->die, &to) && dp_die_peel(&to) && dwarf_tag(&to) == DW_TAG_subroutine_type;
	t->kind = is_function ? DP_STYPE_METHOD : DP_STYPE_MEMBER;
	t->size = is_function ? 16 : 8;
	t->is_signed = true;
}

/* The type's name: decltype(nullptr) in gcc, std::nullptr_t in clang. */
static bool is_nullptr(Dwarf_Die *die)
{
	const char *name = dwarf_diename(die);
	return name && strstr(name, "nullptr");
}

/* ---- nodes ----------------------------------------------------------------------------------------------------------------- */

static void fill(struct dp_debug_ctx *w, struct dp_stype *t)
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
	case DW_TAG_pointer_type:
		t->kind = DP_STYPE_POINTER;
		t->size = 8;
		break;
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		t->kind = DP_STYPE_REFERENCE;
		t->size = 8;
		break;
	case DW_TAG_array_type:
		array_type(w, t);
		break;
	case DW_TAG_union_type:
		t->is_union = true;
		__attribute__((fallthrough));
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
		t->kind = DP_STYPE_RECORD;
		/* Only its own attribute counts: in a type unit the definition refers to a declaration. */
		t->is_incomplete = dwarf_hasattr(&t->die, DW_AT_declaration);
		break;
	case DW_TAG_ptr_to_member_type:
		member_pointer_type(t);
		break;
	case DW_TAG_subroutine_type:
		t->kind = DP_STYPE_FUNCTION;
		t->size = 1;
		break;
	case DW_TAG_unspecified_type:
		t->kind = is_nullptr(&t->die) ? DP_STYPE_POINTER : DP_STYPE_VOID;
		t->size = t->kind == DP_STYPE_POINTER ? 8 : 0;
		break;
	default:
		t->kind = DP_STYPE_OTHER;
	}
}

const struct dp_stype *dp_stype_from(struct dp_debug_ctx *w, struct dp_module *m, Dwarf_Die *die)
{
	struct dp_stype **slot = slot_of(w, die->addr), *t = *slot;
	while (t && t->key != die->addr)
		t = t->chain;
	if (t)
		return t;
	t = w->depth < DEPTH_MAX ? dp_arena_alloc(&w->arena, sizeof(*t)) : NULL;
	if (!t)
		return dp_stype_void(w);
	w->depth++;
	*t = (struct dp_stype){.key = die->addr, .module = m, .whole = *die, .die = *die, .chain = *slot};
	/* Enter it before its parts, which may refer back to it. */
	*slot = t;
	t->name.text = dp_type_format(&w->arena, die);
	t->base.text = dp_type_format_base(&w->arena, die);
	if (!dp_die_peel(&t->die))
		t->kind = DP_STYPE_VOID;
	else
		fill(w, t);
	w->depth--;
	return t;
}

const struct dp_stype *dp_stype_of(struct dp_debug_ctx *w, struct dp_module *m, Dwarf_Die *die)
{
	Dwarf_Die type;
	return dp_die_type(die, &type) ? dp_stype_from(w, m, &type) : dp_stype_void(w);
}

const struct dp_stype *dp_stype_to(struct dp_debug_ctx *w, const struct dp_stype *t)
{
	struct dp_stype *own = (struct dp_stype *)t;
	Dwarf_Die die = t->die;
	if (!t->to)
		own->to = die.addr ? dp_stype_of(w, t->module, &die) : dp_stype_void(w);
	return t->to;
}

const struct dp_stype *dp_stype_pointer(struct dp_debug_ctx *w, const struct dp_stype *to)
{
	struct dp_stype *own = (struct dp_stype *)to, *t;
	if (to->pointer)
		return to->pointer;
	t = dp_arena_alloc(&w->arena, sizeof(*t));
	if (!t)
		return NULL;
	const size_t n = strlen(to->name.text);
	const char *blank = n && to->name.text[n - 1] == '*' ? "" : " ";
	*t = (struct dp_stype){.kind = DP_STYPE_POINTER, .size = 8, .to = to, .module = to->module};
	t->name.text = dp_arena_printf(&w->arena, "%s%s*", to->name.text, blank);
	t->base.text = to->base.text;
	if (!t->name.text)
		return NULL;
	own->pointer = t;
	return t;
}

/* ---- members --------------------------------------------------------------------------------------------------------------- */

struct collect {
	struct dp_debug_ctx *w;
	struct dp_stype *t;
	size_t capacity;
};

static bool add_member(const struct dp_member *m, void *data)
{
	struct collect *c = data;
	Dwarf_Die die = m->die;
	if (c->t->nmembers == c->capacity) {
		const size_t capacity = c->capacity ? 2 * c->capacity : 8;
		struct dp_smember *grown = dp_arena_alloc(&c->w->arena, capacity * sizeof(*grown));
		if (!grown || c->t->nmembers >= MEMBERS_MAX)
			return false;
		if (c->t->nmembers)
			memcpy(grown, c->t->member, c->t->nmembers * sizeof(*grown));
		c->t->member = grown;
		c->capacity = capacity;
	}
	struct dp_smember *x = &c->t->member[c->t->nmembers];
	*x = (struct dp_smember){.name = m->name && *m->name ? m->name : NULL,
	                         .offset = m->offset,
	                         .bit = (uint8_t)m->bit,
	                         .bits = (uint8_t)m->bits,
	                         .is_base = dwarf_tag(&die) == DW_TAG_inheritance,
	                         .is_artificial = dp_die_flag(&die, DW_AT_artificial),
	                         .is_virtual = m->is_virtual,
	                         .die = m->die,
	                         .type = dp_stype_of(c->w, c->t->module, &die)};
	x->label.text = x->name ? x->name : x->is_base && x->type ? x->type->base.text : "";
	c->t->nmembers += x->type != NULL;
	return true;
}

size_t dp_stype_members(struct dp_debug_ctx *w, const struct dp_stype *t, const struct dp_smember **ret)
{
	struct dp_stype *own = (struct dp_stype *)t;
	if (t->kind == DP_STYPE_RECORD && !t->members_known && t->die.addr) {
		struct collect c = {.w = w, .t = own};
		const struct dp_ctype record = {.kind = DP_CTYPE_RECORD, .die = t->die};
		own->members_known = true;
		dp_ctype_members(&w->arena, &record, add_member, &c);
	}
	*ret = t->member;
	return t->kind == DP_STYPE_RECORD ? t->nmembers : 0;
}

/* ---- enumerators ----------------------------------------------------------------------------------------------------------- */

/* Like gdb: single bits, or disjoint groups of bits. */
static bool is_flags(const struct dp_stype *t)
{
	uint64_t seen = 0;
	for (size_t i = 0; i < t->nnames; i++) {
		const uint64_t v = t->enumerator[i].value;
		if ((t->is_signed && (int64_t)v < 0) || (v && v & seen))
			return false;
		seen |= v;
	}
	return t->nnames > 0 && seen > 2;
}

size_t dp_stype_names(struct dp_debug_ctx *w, const struct dp_stype *t, const struct dp_sname **ret)
{
	struct dp_stype *own = (struct dp_stype *)t;
	Dwarf_Die die = t->die, child;
	if (t->kind == DP_STYPE_ENUM && !t->names_known && die.addr && !dwarf_child(&die, &child)) {
		size_t n = 0;
		Dwarf_Die first = child;
		do {
			n++;
		} while (n < NAMES_MAX && !dwarf_siblingof(&child, &child));
		own->names_known = true;
		own->enumerator = dp_arena_alloc(&w->arena, n * sizeof(*own->enumerator));
		child = first;
		do {
			struct dp_sname *x = &own->enumerator[own->nnames];
			const char *name = dwarf_diename(&child);
			if (!own->enumerator)
				break;
			if (dwarf_tag(&child) == DW_TAG_enumerator && name &&
			    dp_die_enumerator(&child, t->is_signed, &x->value)) {
				x->name = name;
				own->nnames++;
			}
		} while (--n && !dwarf_siblingof(&child, &child));
		own->is_flags = is_flags(own);
	}
	*ret = t->enumerator;
	return t->nnames;
}
