/* SPDX-License-Identifier: MIT */
#include "probes/dwarf/type_search.h"
#include "probes/debug/debug_names.h"

#include <dwarf.h>
#include <stdio.h>
#include <string.h>

enum { DEPTH_MAX = 16, STEPS_MAX = 1 << 22, STEPS_LOOK = 1 << 10, NAME_LENGTH = 1024 };

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

static bool starts_with_scope(const char *name, const char *scope)
{
	const size_t n = strlen(scope);
	return !n || (!strncmp(name, scope, n) && (!name[n] || (name[n] == ':' && name[n + 1] == ':')));
}

/* The name behind its scope. */
static const char *last_part(const char *name)
{
	const char *end = name + strcspn(name, "<"), *part = name;
	for (const char *at = name; (at = strstr(at, "::")) && at < end; at += 2)
		part = at + 2;
	return part;
}

/* May the wanted type be in a scope inside the one that is named? */
static bool is_within(const struct dp_type_search *s, const char *scope)
{
	const size_t n = (size_t)(last_part(s->name) - s->name);
	return s->in_any_namespace && (!n || (!strncmp(scope, s->name, n - 2) && (!scope[n - 2] || scope[n - 2] == ':')));
}

static bool take(struct dp_type_search *s, Dwarf_Die *die, const char *scope, const char *qualified)
{
	if (dwarf_hasattr(die, DW_AT_declaration))
		return false;
	if (!strcmp(qualified, s->name) || (is_within(s, scope) && !strcmp(dwarf_diename(die), last_part(s->name)))) {
		s->exact = *die;
		return true;
	}
	if (s->match && !s->near.addr && dp_name_match_text(s->match, qualified))
		s->near = *die;
	return false;
}

static bool is_container(const struct dp_type_search *s, int tag, const char *qualified)
{
	if (tag == DW_TAG_namespace)
		return s->match || starts_with_scope(s->name, qualified) || is_within(s, qualified);
	return (tag == DW_TAG_structure_type || tag == DW_TAG_class_type) && strstr(s->name, "::") &&
	       (s->match || starts_with_scope(s->name, qualified));
}

static bool walk(struct dp_type_search *s, Dwarf_Die *container, const char *scope, unsigned depth)
{
	Dwarf_Die child;
	char qualified[NAME_LENGTH];
	if (depth > DEPTH_MAX || dwarf_child(container, &child))
		return false;
	do {
		const int tag = dwarf_tag(&child);
		if (s->steps++ > STEPS_MAX || (s->steps % STEPS_LOOK == 0 && s->is_over && s->is_over(s->data)))
			return false;
		if (tag != DW_TAG_namespace && !fits(tag, 0))
			continue;
		const char *own = dwarf_diename(&child);
		const int n = snprintf(qualified, sizeof(qualified), "%s%s%s", scope, *scope && own ? "::" : "", own ? own : "");
		if (n < 0 || (size_t)n >= sizeof(qualified))
			continue;
		if ((own && fits(tag, s->tag) && take(s, &child, scope, qualified)) ||
		    (is_container(s, tag, qualified) && walk(s, &child, qualified, depth + 1)))
			return true;
	} while (!dwarf_siblingof(&child, &child));
	return false;
}

bool dp_type_search_unit(struct dp_type_search *s, Dwarf_Die *unit)
{
	s->steps = 0;
	return walk(s, unit, "", 0);
}

Dwarf_Die *dp_type_search(struct dp_type_search *s, struct dp_debug *debug)
{
	struct dp_debug_units units;
	struct dp_debug_unit *one;
	bool found = false;
	if (!dp_debug_units_load(debug, &units))
		return NULL;
	(void)dp_debug_units_add_types(&units); /* best effort: some may be missing when out of memory */
	dp_debug_units_mark_name(&units, dp_debug_word_of(s->name, &(struct dp_debug_word){{0}}));
	while (!found && !(s->is_over && s->is_over(s->data)) && (one = dp_debug_units_next(&units, true)))
		found = dp_type_search_unit(s, &one->die);
	dp_debug_units_fini(&units);
	return found ? &s->exact : s->near.addr ? &s->near : NULL;
}
