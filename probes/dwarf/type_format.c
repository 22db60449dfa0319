/* SPDX-License-Identifier: MIT */
/* Writes a type as C or C++ source: declarators around the name, namespaces before it. */
#include "base/buf.h"
#include "probes/dwarf/type.h"

#include <dwarf.h>
#include <string.h>

enum { NESTING_MAX = 32, PARAMETERS_MAX = 32, STEPS_MAX = 4096, DIMENSIONS_MAX = 16, WORDS_MAX = 256, TEXT_MAX = 1500 };

struct spelling {
	struct dp_arena *arena;
	unsigned depth, words; /* limit: functions may nest and have any number of parameters */
};

static const char *spell(struct spelling *s, Dwarf_Die *die, const char *inner);

/* "name", a space if needed, "inner". */
static const char *join(struct spelling *s, const char *name, const char *inner)
{
	const bool blank = *inner && *name;
	const char *text = dp_arena_printf(s->arena, "%.*s%s%.*s", TEXT_MAX, name, blank ? " " : "", TEXT_MAX, inner);
	return text ? text : "";
}

static bool is_c(Dwarf_Die *die)
{
	Dwarf_Die unit;
	return !dwarf_diecu(die, &unit, NULL, NULL) || dp_die_unit_is_c(&unit);
}

/* Entries are stored in tree order: a container starts before its entries, its sibling after them. */
static bool holds(Dwarf_Die *container, Dwarf_Off offset)
{
	Dwarf_Die next;
	if (dwarf_dieoffset(container) >= offset)
		return false;
	return dwarf_siblingof(container, &next) || dwarf_dieoffset(&next) > offset;
}

static bool is_container(int tag)
{
	return tag == DW_TAG_namespace || tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

/* The scope of `die`, such as "std::"; "" in C. */
static const char *scope_of(struct spelling *s, Dwarf_Die *die)
{
	Dwarf_Die unit, child;
	const Dwarf_Off offset = dwarf_dieoffset(die);
	const char *text = "";
	if (is_c(die) || !dwarf_diecu(die, &unit, NULL, NULL) || dwarf_child(&unit, &child))
		return text;
	for (unsigned depth = 0, steps = 0; depth < NESTING_MAX && steps < 1u << 20; steps++) {
		if (holds(&child, offset)) {
			const char *name = dp_die_name(&child);
			if (is_container(dwarf_tag(&child)) && !dp_die_flag(&child, DW_AT_export_symbols))
				text = dp_arena_printf(s->arena, "%s%s::", text, name ? name : "(anonymous namespace)");
			depth++;
			if (!text || dwarf_child(&child, &child))
				break;
		} else if (dwarf_siblingof(&child, &child)) {
			break;
		}
	}
	return text ? text : "";
}

/* The stub of a type that has its own unit may have no name. */
static void to_definition(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Die definition;
	if (!dwarf_hasattr(die, DW_AT_name) && dwarf_attr(die, DW_AT_signature, &attr) && dwarf_formref_die(&attr, &definition))
		*die = definition;
}

static const char *named(struct spelling *s, Dwarf_Die *at, const char *keyword)
{
	Dwarf_Die definition = *at, *die = &definition;
	to_definition(die);
	const char *name = dwarf_diename(die);
	const char *scope = name ? scope_of(s, die) : "";
	if (!name)
		return *keyword ? dp_arena_printf(s->arena, "%s {...}", keyword) : "void";
	const char *text = dp_arena_printf(s->arena, "%s%s%s%.*s", is_c(die) ? keyword : "", is_c(die) && *keyword ? " " : "",
	                                   scope, TEXT_MAX, name);
	return text ? text : "";
}

static bool is_qualifier(int tag)
{
	return tag == DW_TAG_const_type || tag == DW_TAG_volatile_type || tag == DW_TAG_restrict_type ||
	       tag == DW_TAG_atomic_type;
}

/* Qualifiers of an array or function do not come between it and the declarator. */
static bool binds_tighter(const Dwarf_Die *of)
{
	Dwarf_Die die = *of;
	for (unsigned i = 0; i < NESTING_MAX && is_qualifier(dwarf_tag(&die)) && dp_die_type(&die, &die); i++)
		;
	const int tag = dwarf_tag(&die);
	return tag == DW_TAG_array_type || tag == DW_TAG_subroutine_type;
}

static const char *pointer(struct spelling *s, Dwarf_Die *die, const char *sign, const char *inner)
{
	Dwarf_Die to;
	const char *with = dp_arena_printf(s->arena, "%s%.*s", sign, TEXT_MAX, inner);
	if (!with)
		return "";
	if (!dp_die_type(die, &to))
		return join(s, "void", with);
	if (binds_tighter(&to))
		with = dp_arena_printf(s->arena, "(%s)", with);
	return with ? spell(s, &to, with) : "";
}

static const char *member_pointer(struct spelling *s, Dwarf_Die *die, const char *inner)
{
	Dwarf_Die class;
	Dwarf_Attribute attr;
	const bool any = dwarf_attr(die, DW_AT_containing_type, &attr) && dwarf_formref_die(&attr, &class);
	const char *sign = any ? dp_arena_printf(s->arena, "%s::*", named(s, &class, "")) : NULL;
	return pointer(s, die, sign ? sign : "*", inner);
}

/* A const array has const elements. Compilers may state both; the source states it once. */
static bool is_said_of_elements(Dwarf_Die *die, Dwarf_Die to)
{
	unsigned steps = 0;
	if (dwarf_tag(&to) != DW_TAG_array_type)
		return false;
	while (dwarf_tag(&to) == DW_TAG_array_type && steps++ < STEPS_MAX && dp_die_type(&to, &to))
		;
	return dwarf_tag(&to) == dwarf_tag(die);
}

/* A pointer's qualifier comes after the star. */
static const char *qualified(struct spelling *s, Dwarf_Die *die, const char *word, const char *inner)
{
	Dwarf_Die to;
	const bool any = dp_die_type(die, &to);
	const int tag = any ? dwarf_tag(&to) : 0;
	if (tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type) {
		const char *with = dp_arena_printf(s->arena, " %s%s%.*s", word, *inner ? " " : "", TEXT_MAX, inner);
		return with ? spell(s, &to, with) : "";
	}
	const char *text = any ? spell(s, &to, inner) : join(s, "void", inner);
	if (any && is_said_of_elements(die, to))
		return text;
	text = dp_arena_printf(s->arena, "%s %s", word, text);
	return text ? text : "";
}

static const char *function(struct spelling *s, Dwarf_Die *die, const char *inner)
{
	Dwarf_Die child, type;
	const char *list = "", *with;
	unsigned n = 0, steps = 0;
	if (!dwarf_child(die, &child))
		do {
			const int tag = dwarf_tag(&child);
			const char *one = tag == DW_TAG_unspecified_parameters ? "..." : NULL;
			if (tag == DW_TAG_formal_parameter)
				one = dp_die_type(&child, &type) ? spell(s, &type, "") : "void";
			if (one)
				list = dp_arena_printf(s->arena, "%s%s%.*s", list, n++ ? ", " : "", TEXT_MAX, one);
		} while (list && n < PARAMETERS_MAX && steps++ < STEPS_MAX && !dwarf_siblingof(&child, &child));
	with = dp_arena_printf(s->arena, "%.*s(%.*s)", TEXT_MAX, inner, TEXT_MAX,
	                       !list                                ? ""
	                       : n                                  ? list
	                       : dp_die_flag(die, DW_AT_prototyped) ? "void"
	                                                            : "");
	if (!with)
		return "";
	return dp_die_type(die, &type) ? spell(s, &type, with) : join(s, "void", with);
}

static const char *array(struct spelling *s, Dwarf_Die *die, const char *inner)
{
	Dwarf_Die child, to;
	const char *with = inner;
	unsigned steps = 0;
	if (!dwarf_child(die, &child))
		do {
			if (dwarf_tag(&child) != DW_TAG_subrange_type)
				continue;
			const struct dp_dimension d = dp_die_dimension(&child);
			if (d.is_known)
				with = dp_arena_printf(s->arena, "%.*s[%llu]", TEXT_MAX, with, (unsigned long long)d.n);
			else
				with = dp_arena_printf(s->arena, "%.*s[]", TEXT_MAX, with);
		} while (with && steps++ < DIMENSIONS_MAX && !dwarf_siblingof(&child, &child));
	if (!with)
		return "";
	return dp_die_type(die, &to) ? spell(s, &to, with) : join(s, "void", with);
}

static const char *spell(struct spelling *s, Dwarf_Die *die, const char *inner)
{
	const char *text = NULL;
	if (s->depth >= NESTING_MAX || s->words++ > WORDS_MAX)
		return join(s, "...", inner);
	s->depth++;
	switch (dwarf_tag(die)) {
	case DW_TAG_pointer_type:
		text = pointer(s, die, "*", inner);
		break;
	case DW_TAG_reference_type:
		text = pointer(s, die, "&", inner);
		break;
	case DW_TAG_rvalue_reference_type:
		text = pointer(s, die, "&&", inner);
		break;
	case DW_TAG_ptr_to_member_type:
		text = member_pointer(s, die, inner);
		break;
	case DW_TAG_const_type:
		text = qualified(s, die, "const", inner);
		break;
	case DW_TAG_volatile_type:
		text = qualified(s, die, "volatile", inner);
		break;
	case DW_TAG_restrict_type:
		text = qualified(s, die, "restrict", inner);
		break;
	case DW_TAG_atomic_type:
		text = qualified(s, die, "_Atomic", inner);
		break;
	case DW_TAG_subroutine_type:
		text = function(s, die, inner);
		break;
	case DW_TAG_array_type:
		text = array(s, die, inner);
		break;
	case DW_TAG_structure_type:
		text = join(s, named(s, die, "struct"), inner);
		break;
	case DW_TAG_class_type:
		text = join(s, named(s, die, "class"), inner);
		break;
	case DW_TAG_union_type:
		text = join(s, named(s, die, "union"), inner);
		break;
	case DW_TAG_enumeration_type:
		text = join(s, named(s, die, "enum"), inner);
		break;
	default:
		text = join(s, named(s, die, ""), inner);
	}
	s->depth--;
	return text ? text : "";
}

/* The declarator of a type that is not in the debug information, around `inner`. */
static const char *declarator(struct dp_arena *arena, const struct dp_ctype *type, const char *inner)
{
	const unsigned long long n = type->count;
	if (type->kind == DP_CTYPE_POINTER)
		return dp_arena_printf(arena, "*%.*s", TEXT_MAX, inner);
	if (*inner == '*')
		return dp_arena_printf(arena, "(%.*s)[%llu]", TEXT_MAX, inner, n);
	return dp_arena_printf(arena, "%.*s[%llu]", TEXT_MAX, inner, n);
}

const char *dp_ctype_format(struct dp_arena *arena, const struct dp_ctype *type)
{
	struct spelling s = {.arena = arena};
	const char *inner = "";
	for (; inner && !type->whole.addr && type->to; type = type->to)
		inner = declarator(arena, type, inner);
	Dwarf_Die die = type->whole;
	if (inner && *inner == '*' && die.addr && binds_tighter(&die))
		inner = dp_arena_printf(arena, "(%.*s)", TEXT_MAX, inner);
	if (!inner)
		return "";
	return die.addr ? spell(&s, &die, inner) : join(&s, type->name ? type->name : "void", inner);
}

/* Strips pointers, arrays and qualifiers; keeps a typedef's name. */
const char *dp_type_format_base(struct dp_arena *arena, Dwarf_Die *type)
{
	struct spelling s = {.arena = arena};
	Dwarf_Die die = *type;
	for (unsigned i = 0; i < NESTING_MAX && die.addr; i++)
		switch (dwarf_tag(&die)) {
		case DW_TAG_pointer_type:
		case DW_TAG_reference_type:
		case DW_TAG_rvalue_reference_type:
		case DW_TAG_array_type:
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
		case DW_TAG_restrict_type:
		case DW_TAG_atomic_type:
			if (!dp_die_type(&die, &die))
				return "void";
			break;
		case DW_TAG_subroutine_type:
		case DW_TAG_ptr_to_member_type:
			return spell(&s, &die, "");
		default: {
			to_definition(&die);
			const char *name = dwarf_diename(&die);
			const char *text = name ? dp_arena_printf(arena, "%s%.*s", scope_of(&s, &die), TEXT_MAX, name) : "";
			return text ? text : "";
		}
		}
	return "void";
}
