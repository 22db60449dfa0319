/* SPDX-License-Identifier: MIT */
/* Finds types by name: for casts and sizeof, and definitions of types that are only declared. */
#include "probes/dwarf/type_search.h"
#include "probes/expr/scope/scope_internal.h"

static bool look_up(struct dp_scope *s, int tag, const char *name, Dwarf_Die *ret)
{
	struct dp_type_search search = {.name = name, .tag = tag, .in_any_namespace = true};
	Dwarf_Die *found =
	        s->unit.addr && dp_type_search_unit(&search, &s->unit) ? &search.exact : dp_type_search(&search, s->debug);
	if (found)
		*ret = *found;
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
		t = dp_ctype_from(&s->types, &die);
	}
	for (unsigned i = 0; t && i < type->pointers; i++)
		t = dp_ctype_pointer(&s->types, t);
	if (t && type->dimensions)
		t = dp_type_complete(s, t);
	for (unsigned i = type->dimensions; t && i-- > 0;)
		t = dp_ctype_array(&s->types, t, type->dimension[i]);
	for (unsigned i = 0; t && i < type->outer; i++)
		t = dp_ctype_pointer(&s->types, t);
	return t;
}

const struct dp_ctype *dp_type_complete(struct dp_scope *s, const struct dp_ctype *type)
{
	Dwarf_Die found;
	const bool wanted = type->is_incomplete && type->name && s->debug;
	return wanted && find(s, type->is_union ? 'u' : 's', type->name, &found) ? dp_ctype_from(&s->types, &found) : type;
}
