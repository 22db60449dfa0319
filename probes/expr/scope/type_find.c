/* SPDX-License-Identifier: MIT */
/* Finds types by name: for casts and sizeof, and definitions of types that are only declared. */
#include "probes/debug/debug_names.h"
#include "probes/expr/scope/scope_internal.h"

#include <dwarf.h>
#include <string.h>

enum { DEPTH_MAX = 16, STEPS_MAX = 1 << 22 };

struct search {
	int tag; /* 's', 'u', 'e', 'c' or 0 */
	Dwarf_Die found;
	unsigned steps;
};

static bool fits(int tag, int wanted)
{
	switch (tag) {
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
		return !wanted || wanted == 's' || wanted == 'c';
	case DW_TAG_union_type:
		return !wanted || wanted == 'u';
	case DW_TAG_enumeration_type:
		return !wanted || wanted == 'e';
	case DW_TAG_typedef:
	case DW_TAG_base_type:
		return !wanted;
	default:
		return false;
	}
}

static bool in_container(struct search *s, Dwarf_Die *container, const char *name, unsigned depth)
{
	Dwarf_Die child;
	const char *sep = strstr(name, "::");
	if (depth > DEPTH_MAX || dwarf_child(container, &child))
		return false;
	do {
		const int tag = dwarf_tag(&child);
		const bool holds = tag == DW_TAG_namespace || ((tag == DW_TAG_structure_type || tag == DW_TAG_class_type) && sep);
		const char *own = holds || fits(tag, s->tag) ? dwarf_diename(&child) : NULL;
		if (s->steps++ > STEPS_MAX)
			return false;
		if (own && fits(tag, s->tag) && !strcmp(own, name) && !dp_die_flag(&child, DW_AT_declaration)) {
			s->found = child;
			return true;
		}
		if (!holds)
			continue;
		const bool inside = sep && own && strlen(own) == (size_t)(sep - name) && !memcmp(own, name, strlen(own));
		if (inside ? in_container(s, &child, sep + 2, depth + 1)
		           : tag == DW_TAG_namespace && (!sep || !own) && in_container(s, &child, name, depth + 1))
			return true;
	} while (!dwarf_siblingof(&child, &child));
	return false;
}

static bool look_up(struct dp_scope *s, int tag, const char *name, Dwarf_Die *ret)
{
	struct search search = {.tag = tag};
	struct dp_debug_units units;
	struct dp_debug_unit *one;
	bool found = s->unit.addr && in_container(&search, &s->unit, name, 0);
	if (!found && dp_debug_units_load(s->debug, &units)) {
		(void)dp_debug_units_add_types(&units); /* best effort: some may be missing when out of memory */
		dp_debug_units_mark_name(&units, dp_debug_word_of(name, &(struct dp_debug_word){{0}}));
		while (!found && (one = dp_debug_units_next(&units, true)))
			found = in_container(&search, &one->die, name, 0);
		dp_debug_units_fini(&units);
	}
	*ret = search.found;
	return found;
}

static bool find(struct dp_scope *s, int tag, const char *name, Dwarf_Die *ret)
{
	struct dp_found_name *known = dp_scope_recall(s, name, tag);
	if (!known && (known = dp_scope_remember(s, name, tag)))
		known->found = look_up(s, tag, name, &known->type);
	if (!known)
		return look_up(s, tag, name, ret);
	*ret = known->type;
	return known->found;
}

const struct dp_ctype *dp_type_find(struct dp_scope *s, const struct dp_ast_type *type)
{
	Dwarf_Die die;
	const struct dp_ctype *t = type->tag ? NULL : dp_ctype_plain(type->name);
	if (!t) {
		struct dp_error *err = dp_scope_debug(s);
		dp_error_destroy(err);
		if (err || !find(s, type->tag, type->name, &die))
			return NULL;
		t = dp_ctype_from(&s->arena, &die);
	}
	for (unsigned i = 0; t && i < type->pointers; i++)
		t = dp_ctype_pointer(&s->arena, t);
	if (t && type->dimensions)
		t = dp_type_complete(s, t);
	for (unsigned i = type->dimensions; t && i-- > 0;)
		t = dp_ctype_array(&s->arena, t, type->dimension[i]);
	for (unsigned i = 0; t && i < type->outer; i++)
		t = dp_ctype_pointer(&s->arena, t);
	return t;
}

const struct dp_ctype *dp_type_complete(struct dp_scope *s, const struct dp_ctype *type)
{
	Dwarf_Die die = type->die, found;
	if (type->kind != DP_CTYPE_RECORD || type->size || !die.addr || !type->name || !s->debug ||
	    !dp_die_flag(&die, DW_AT_declaration))
		return type;
	if (!find(s, type->is_union ? 'u' : 's', type->name, &found))
		return type;
	const struct dp_ctype *whole = dp_ctype_from(&s->arena, &found);
	return whole ? whole : type;
}
