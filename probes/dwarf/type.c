/* SPDX-License-Identifier: MIT */
#include "probes/dwarf/type.h"

#include <dwarf.h>
#include <string.h>

enum { DIMENSIONS_MAX = 16, STEPS_MAX = 4096 };

const struct dp_ctype dp_ctype_int = {.kind = DP_CTYPE_INT, .size = 4, .is_signed = true, .name = "int"};
const struct dp_ctype dp_ctype_uint = {.kind = DP_CTYPE_INT, .size = 4, .name = "unsigned int"};
const struct dp_ctype dp_ctype_long = {.kind = DP_CTYPE_INT, .size = 8, .is_signed = true, .name = "long"};
const struct dp_ctype dp_ctype_ulong = {.kind = DP_CTYPE_INT, .size = 8, .name = "unsigned long"};
const struct dp_ctype dp_ctype_word = {.kind = DP_CTYPE_INT, .size = 8, .is_signed = true, .is_word = true, .name = "register"};
const struct dp_ctype dp_ctype_result = {
        .kind = DP_CTYPE_INT, .size = 8, .is_signed = true, .display = DP_DISPLAY_RESULT, .name = "result"};
const struct dp_ctype dp_ctype_call = {
        .kind = DP_CTYPE_INT, .size = 8, .display = DP_DISPLAY_CALL, .name = "number of a system call"};
const struct dp_ctype dp_ctype_char = {.kind = DP_CTYPE_INT, .size = 1, .is_signed = true, .is_char = true, .name = "char"};
const struct dp_ctype dp_ctype_bool = {.kind = DP_CTYPE_INT, .size = 1, .is_bool = true, .name = "bool"};
const struct dp_ctype dp_ctype_double = {.kind = DP_CTYPE_FLOAT, .size = 8, .name = "double"};
const struct dp_ctype dp_ctype_float = {.kind = DP_CTYPE_FLOAT, .size = 4, .name = "float"};
const struct dp_ctype dp_ctype_void = {.kind = DP_CTYPE_VOID, .name = "void"};
const struct dp_ctype dp_ctype_void_pointer = {.kind = DP_CTYPE_POINTER, .size = 8, .to = &dp_ctype_void, .name = "void *"};

/* ---- from the debug information ---- */

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

/* Types that expressions cannot compute with. */
static void wide_type(struct dp_ctype *t, uint64_t encoding)
{
	t->kind = DP_CTYPE_OTHER;
	if (t->size != 16)
		return;
	t->is_long_double = encoding == DW_ATE_float && is_x87(t);
	if (t->is_long_double)
		t->display = DP_DISPLAY_LONG_DOUBLE;
	else if (encoding == DW_ATE_signed || encoding == DW_ATE_unsigned)
		t->display = encoding == DW_ATE_signed ? DP_DISPLAY_INT128 : DP_DISPLAY_UINT128;
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

static void base_type(struct dp_ctype *t)
{
	uint64_t encoding = 0;
	dp_die_unsigned(&t->die, DW_AT_encoding, &encoding);
	t->kind = DP_CTYPE_INT;
	switch (encoding) {
	case DW_ATE_boolean:
		t->is_bool = true;
		break;
	case DW_ATE_signed_char:
		t->is_char = t->name && (!strcmp(t->name, "char") || !strcmp(t->name, "signed char"));
		t->is_signed = true;
		break;
	case DW_ATE_unsigned_char:
		t->is_char = t->name && !strcmp(t->name, "char");
		break;
	case DW_ATE_UTF:
	case DW_ATE_unsigned:
		break;
	case DW_ATE_signed:
		t->is_signed = true;
		break;
	case DW_ATE_float:
		t->kind = t->size == 4 || t->size == 8 ? DP_CTYPE_FLOAT : DP_CTYPE_OTHER;
		break;
	default:
		t->kind = DP_CTYPE_OTHER;
	}
	if (t->kind == DP_CTYPE_OTHER || (t->size != 1 && t->size != 2 && t->size != 4 && t->size != 8))
		wide_type(t, encoding);
}

static void enum_type(struct dp_ctype *t)
{
	t->kind = DP_CTYPE_INT;
	t->is_enum = true;
	t->is_signed = dp_die_enumeration_is_signed(&t->die, &t->size);
	if (t->size != 1 && t->size != 2 && t->size != 4 && t->size != 8)
		t->kind = DP_CTYPE_OTHER;
}

/* Makes one array per dimension; the outermost comes first in the source. */
static const struct dp_ctype *array_type(struct dp_arena *arena, Dwarf_Die *die)
{
	uint64_t count[DIMENSIONS_MAX];
	size_t n = 0;
	unsigned steps = 0;
	Dwarf_Die child;
	const struct dp_ctype *t = dp_ctype_of(arena, die);
	if (!dwarf_child(die, &child))
		do {
			if (dwarf_tag(&child) == DW_TAG_subrange_type && n < DIMENSIONS_MAX)
				count[n++] = dp_die_dimension(&child).n;
		} while (steps++ < STEPS_MAX && !dwarf_siblingof(&child, &child));
	if (!n)
		count[n++] = 0;
	while (t && n)
		t = dp_ctype_array(arena, t, count[--n]);
	return t;
}

const struct dp_ctype *dp_ctype_from(struct dp_arena *arena, Dwarf_Die *die)
{
	Dwarf_Die peeled = *die;
	struct dp_ctype *t = dp_arena_alloc(arena, sizeof(*t));
	if (!t)
		return NULL;
	if (!dp_die_peel(&peeled))
		return &dp_ctype_void;
	*t = (struct dp_ctype){.kind = DP_CTYPE_OTHER, .die = peeled, .name = dwarf_diename(&peeled)};
	dp_die_unsigned(&peeled, DW_AT_byte_size, &t->size);
	switch (dwarf_tag(&peeled)) {
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
	case DW_TAG_ptr_to_member_type:
		t->kind = dwarf_tag(&peeled) == DW_TAG_ptr_to_member_type ? DP_CTYPE_OTHER : DP_CTYPE_POINTER;
		t->size = 8;
		break;
	case DW_TAG_array_type:
		return array_type(arena, &peeled);
	case DW_TAG_union_type:
		t->is_union = true;
		__attribute__((fallthrough));
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
		t->kind = DP_CTYPE_RECORD;
		break;
	case DW_TAG_unspecified_type: /* decltype(nullptr) */
		return &dp_ctype_void;
	default:
		break;
	}
	return t;
}

const struct dp_ctype *dp_ctype_of(struct dp_arena *arena, Dwarf_Die *die)
{
	Dwarf_Die type;
	return dp_die_type(die, &type) ? dp_ctype_from(arena, &type) : &dp_ctype_void;
}

const struct dp_ctype *dp_ctype_to(struct dp_arena *arena, const struct dp_ctype *type)
{
	Dwarf_Die die = type->die;
	if (type->to)
		return type->to;
	return die.addr ? dp_ctype_of(arena, &die) : &dp_ctype_void;
}

/* ---- the language's own ---- */

const struct dp_ctype *dp_ctype_pointer(struct dp_arena *arena, const struct dp_ctype *to)
{
	struct dp_ctype *t = dp_arena_alloc(arena, sizeof(*t));
	if (t)
		*t = (struct dp_ctype){.kind = DP_CTYPE_POINTER, .size = 8, .to = to, .name = "pointer"};
	return t;
}

const struct dp_ctype *dp_ctype_array(struct dp_arena *arena, const struct dp_ctype *element, uint64_t count)
{
	struct dp_ctype *t = dp_arena_alloc(arena, sizeof(*t));
	uint64_t size;
	if (!t)
		return NULL;
	if (__builtin_mul_overflow(element->size, count, &size))
		size = count = 0;
	*t = (struct dp_ctype){.kind = DP_CTYPE_ARRAY, .size = size, .count = count, .to = element, .name = "array"};
	return t;
}

static const struct dp_ctype dp_ctype_short = {.kind = DP_CTYPE_INT, .size = 2, .is_signed = true, .name = "short"},
                             dp_ctype_ushort = {.kind = DP_CTYPE_INT, .size = 2, .name = "unsigned short"},
                             dp_ctype_schar = {.kind = DP_CTYPE_INT, .size = 1, .is_signed = true, .name = "signed char"},
                             dp_ctype_uchar = {.kind = DP_CTYPE_INT, .size = 1, .name = "unsigned char"};

static const struct dp_ctype dp_ctype_int128 = {.kind = DP_CTYPE_OTHER,
                                                .size = 16,
                                                .is_signed = true,
                                                .display = DP_DISPLAY_INT128,
                                                .name = "__int128"},
                             dp_ctype_uint128 = {.kind = DP_CTYPE_OTHER,
                                                 .size = 16,
                                                 .display = DP_DISPLAY_UINT128,
                                                 .name = "unsigned __int128"},
                             dp_ctype_long_double = {.kind = DP_CTYPE_OTHER,
                                                     .size = 16,
                                                     .is_long_double = true,
                                                     .display = DP_DISPLAY_LONG_DOUBLE,
                                                     .name = "long double"};

static const struct {
	const char *name;
	const struct dp_ctype *type;
} named[] = {
        {"__int128", &dp_ctype_int128},
        {"unsigned __int128", &dp_ctype_uint128},
        {"__int128 unsigned", &dp_ctype_uint128},
        {"signed __int128", &dp_ctype_int128},
        {"long double", &dp_ctype_long_double},
        {"double long", &dp_ctype_long_double},
        {"int8_t", &dp_ctype_schar},
        {"uint8_t", &dp_ctype_uchar},
        {"int16_t", &dp_ctype_short},
        {"uint16_t", &dp_ctype_ushort},
        {"int32_t", &dp_ctype_int},
        {"uint32_t", &dp_ctype_uint},
        {"int64_t", &dp_ctype_long},
        {"uint64_t", &dp_ctype_ulong},
        {"size_t", &dp_ctype_ulong},
        {"ssize_t", &dp_ctype_long},
        {"intptr_t", &dp_ctype_long},
        {"uintptr_t", &dp_ctype_ulong},
        {"float", &dp_ctype_float},
        {"double", &dp_ctype_double},
        {"void", &dp_ctype_void},
        {"bool", &dp_ctype_bool},
        {"_Bool", &dp_ctype_bool},
        {"char", &dp_ctype_char},
};

/* Accepts "unsigned long int" with its words in any order. */
static bool count_words(const char *name, unsigned count[6])
{
	static const char *const words[] = {"signed", "unsigned", "char", "short", "int", "long"};
	for (size_t len; *name; name += len + (name[len] == ' ')) {
		size_t i = 0;
		len = strcspn(name, " ");
		while (i < 6 && (strlen(words[i]) != len || memcmp(words[i], name, len)))
			i++;
		if (i == 6)
			return false;
		count[i]++;
	}
	return true;
}

const struct dp_ctype *dp_ctype_plain(const char *name)
{
	unsigned n[6] = {0};
	for (size_t i = 0; i < sizeof(named) / sizeof(*named); i++)
		if (!strcmp(name, named[i].name))
			return named[i].type;
	if (!count_words(name, n) || n[0] + n[1] > 1 || n[2] + n[3] > 1 || n[4] > 1 || n[5] > 2)
		return NULL;
	if (n[2])
		return n[4] || n[5] ? NULL : n[1] ? &dp_ctype_uchar : &dp_ctype_schar;
	if (n[3])
		return n[5] ? NULL : n[1] ? &dp_ctype_ushort : &dp_ctype_short;
	if (n[5])
		return n[1] ? &dp_ctype_ulong : &dp_ctype_long;
	return n[1] ? &dp_ctype_uint : &dp_ctype_int;
}
