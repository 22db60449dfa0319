/* SPDX-License-Identifier: MIT */
/* Resolves variable names by C's and C++'s scopes at a site. */
#include "probes/debug/debug_names.h"
#include "probes/expr/scope/scope_internal.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS_MAX = 1 << 20, DEPTH_MAX = 64 };

struct lookup {
	struct dp_scope *s;
	const char *name;
	struct dp_variable *ret;
	Dwarf_Die function;
	unsigned steps;
};

static bool is_named(Dwarf_Die *die, const char *name)
{
	const char *found = dp_die_name(die);
	return found && !strcmp(found, name);
}

static bool holds_pc(struct dp_scope *s, Dwarf_Die *block)
{
	return dwarf_haspc(block, s->pc) > 0;
}

static bool take(struct lookup *l, Dwarf_Die *die)
{
	*l->ret = (struct dp_variable){
	        .die = *die, .function = l->function, .name = l->name, .is_parameter = dwarf_tag(die) == DW_TAG_formal_parameter};
	return true;
}

static bool in_enumeration(struct lookup *l, Dwarf_Die *type)
{
	Dwarf_Die child;
	uint64_t value;
	if (dwarf_child(type, &child))
		return false;
	do {
		if (!is_named(&child, l->name))
			continue;
		const struct dp_ctype *t = dp_ctype_from(&l->s->types, type);
		int64_t negative;
		if (!t || !dp_die_unsigned(&child, DW_AT_const_value, &value))
			return false;
		if (t->is_signed && dp_die_signed(&child, DW_AT_const_value, &negative))
			value = (uint64_t)negative;
		*l->ret = (struct dp_variable){.name = l->name, .is_constant = true, .value = value, .type = t};
		return true;
	} while (!dwarf_siblingof(&child, &child));
	return false;
}

/* Inner blocks come first. In a block the last entry with a name wins: a block declares a name once, but lists it before use. */
static bool in_block(struct lookup *l, Dwarf_Die *block, unsigned depth)
{
	Dwarf_Die child, found;
	bool any = false;
	if (depth > DEPTH_MAX || dwarf_child(block, &child))
		return false;
	do {
		const int tag = dwarf_tag(&child);
		if (l->steps++ > STEPS_MAX)
			return false;
		if (tag == DW_TAG_lexical_block && holds_pc(l->s, &child) && in_block(l, &child, depth + 1))
			return true;
		const bool local =
		        tag == DW_TAG_formal_parameter || (tag == DW_TAG_variable && !dp_die_flag(&child, DW_AT_declaration));
		if (local && is_named(&child, l->name)) {
			found = child;
			any = true;
		}
		if (tag == DW_TAG_enumeration_type && in_enumeration(l, &child))
			return true;
	} while (!dwarf_siblingof(&child, &child));
	return any && take(l, &found);
}

/* clang omits optimized-out variables from a copy. The name then does not mean a variable of an outer function. */
static bool is_lost(struct lookup *l)
{
	Dwarf_Die die;
	return dp_parameters_lost(&l->function, l->name, &die) && take(l, &die);
}

/* The variable may belong to an inlined function that starts at this instruction, or to another one: the address does not
 * tell. */
static bool in_beginning(struct lookup *l)
{
	for (size_t i = 0; i < l->s->nbeginning; i++) {
		l->function = l->s->beginning[i];
		if (in_block(l, &l->function, 0) || is_lost(l)) {
			l->ret->is_ambiguous = true;
			return true;
		}
	}
	return false;
}

static bool in_functions(struct lookup *l)
{
	if (in_beginning(l))
		return true;
	for (size_t i = 0; i < l->s->nfunctions; i++) {
		l->function = l->s->function[i];
		if (in_block(l, &l->s->function[i], 0) || is_lost(l))
			return true;
	}
	memset(&l->function, 0, sizeof(l->function));
	return false;
}

/* A declaration has its definition elsewhere; a definition without a location was optimized out. */
static bool is_defined(Dwarf_Die *die)
{
	return dwarf_hasattr(die, DW_AT_location) || dwarf_hasattr(die, DW_AT_const_value) ||
	       !dp_die_flag(die, DW_AT_declaration);
}

static bool in_container(struct lookup *l, Dwarf_Die *container, const char *name, unsigned depth, bool external);

/* `name` may be ns::x. A name without namespace matches in every namespace, as if there were a using for each. */
static bool in_namespace(struct lookup *l, Dwarf_Die *die, const char *name, unsigned depth, bool external)
{
	const char *sep = strstr(name, "::"), *own = dp_die_name(die);
	if (sep && own && strlen(own) == (size_t)(sep - name) && !memcmp(own, name, strlen(own)))
		return in_container(l, die, sep + 2, depth + 1, external);
	return (!sep || !own) && in_container(l, die, name, depth + 1, external);
}

/* gcc emits definitions of a namespace's variables outside of it: the mangled name, _ZN2ns1xE, has the parts. */
static bool is_mangled(Dwarf_Die *die, const char *name)
{
	Dwarf_Attribute attr;
	const char *linkage = dwarf_attr_integrate(die, DW_AT_linkage_name, &attr) ? dwarf_formstring(&attr) : NULL;
	for (size_t n; linkage && *name; name += n + (name[n] ? 2 : 0)) {
		char part[128];
		n = strcspn(name, ":");
		snprintf(part, sizeof(part), "%zu%.*s", n, (int)(n < 100 ? n : 100), name);
		linkage = strstr(linkage, part);
		linkage = linkage ? linkage + strlen(part) : NULL;
	}
	return linkage && *linkage == 'E';
}

static bool global_here(struct lookup *l, Dwarf_Die *die, const char *name, bool external)
{
	if (strstr(name, "::"))
		return dwarf_hasattr(die, DW_AT_specification) && is_defined(die) && is_mangled(die, name) && take(l, die);
	if (!is_defined(die) || (external && !dp_die_flag(die, DW_AT_external)) || !is_named(die, name))
		return false;
	return take(l, die);
}

static bool in_container(struct lookup *l, Dwarf_Die *container, const char *name, unsigned depth, bool external)
{
	Dwarf_Die child;
	const char *whole = l->name;
	if (depth > DEPTH_MAX || dwarf_child(container, &child))
		return false;
	do {
		if (l->steps++ > STEPS_MAX)
			return false;
		switch (dwarf_tag(&child)) {
		case DW_TAG_variable:
			if (global_here(l, &child, name, external))
				return true;
			break;
		case DW_TAG_namespace:
			if (in_namespace(l, &child, name, depth, external))
				return true;
			break;
		case DW_TAG_enumeration_type: {
			const char *tag = dp_die_name(&child);
			const size_t n = tag ? strlen(tag) : 0;
			l->name = n && !strncmp(name, tag, n) && !strncmp(name + n, "::", 2) ? name + n + 2 : name;
			const bool found = in_enumeration(l, &child);
			l->name = whole;
			if (found)
				return true;
			break;
		}
		case DW_TAG_structure_type:
		case DW_TAG_class_type:
			if (strstr(name, "::") && in_namespace(l, &child, name, depth, external))
				return true;
			break;
		default:
			break;
		}
	} while (!dwarf_siblingof(&child, &child));
	return false;
}

/* Finds variables declared in the function's unit or namespace but defined in another unit. */
static bool in_other_units(struct lookup *l)
{
	struct dp_debug_units units;
	struct dp_debug_unit *one;
	bool found = false;
	if (!dp_debug_units_load(l->s->debug, &units))
		return false;
	/* A definition may take its name from a declaration in another unit. */
	dp_debug_units_mark_name(&units, units.refers ? NULL : dp_debug_word_of(l->name, &(struct dp_debug_word){{0}}));
	while (!found && (one = dp_debug_units_next(&units, false))) {
		l->steps = 0;
		found = in_container(l, &one->die, l->name, 0, true);
	}
	dp_debug_units_fini(&units);
	return found;
}

/* file.c::name: matches a unit whose path is the file or ends with a slash and the file. */
static bool names_file(Dwarf_Die *unit, const char *file, size_t n)
{
	const char *path = dwarf_diename(unit);
	const size_t len = path ? strlen(path) : 0;
	return len >= n && !memcmp(path + len - n, file, n) && (len == n || path[len - n - 1] == '/');
}

static bool in_file(struct lookup *l, const char *file, size_t n, const char *name)
{
	Dwarf_CU *cursor = NULL;
	Dwarf_Die unit;
	while (dp_debug_next_unit(l->s->debug, &cursor, &unit)) {
		l->steps = 0;
		if (names_file(&unit, file, n) && in_container(l, &unit, name, 0, false))
			return true;
	}
	return false;
}

static bool in_own_unit(struct lookup *l)
{
	struct dp_scope *s = l->s;
	if (!s->unit.addr || dp_debug_lacks(s->debug, &s->unit, l->name))
		return false;
	l->steps = 0;
	const bool found = in_container(l, &s->unit, l->name, 0, false);
	if (!found)
		dp_debug_note_lack(s->debug, &s->unit, l->name);
	return found;
}

static bool look_up(struct dp_scope *s, const char *name, bool far, struct dp_variable *ret)
{
	struct lookup l = {.s = s, .name = name, .ret = ret};
	const char *sep = strstr(name, "::");
	struct dp_error *err = dp_scope_debug(s);
	dp_error_destroy(err);
	if (err)
		return false;
	if (sep && memchr(name, '.', (size_t)(sep - name)))
		return in_file(&l, name, (size_t)(sep - name), sep + 2);
	if (far)
		return in_other_units(&l);
	return (!sep && in_functions(&l)) || in_own_unit(&l);
}

bool dp_variable_find(struct dp_scope *s, const char *name, bool far, struct dp_variable *ret)
{
	const int how = far ? DP_NAME_FAR : DP_NAME_NEAR;
	struct dp_found_name *known = dp_scope_recall(s, name, how);
	if (!known && (known = dp_scope_remember(s, name, how)))
		known->found = look_up(s, known->name, far, &known->variable);
	if (!known)
		return look_up(s, name, far, ret);
	if (known->found)
		*ret = known->variable;
	return known->found;
}
