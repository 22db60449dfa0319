/* SPDX-License-Identifier: MIT */
/*
 * Inlined functions. The debug information has an abstract entry for each function that was inlined (or cloned), and in the
 * functions around it an entry per copy that points there. With LTO and dwz the two are in different units, so all units are
 * walked: first for the function's name, then, if it is there, for its copies.
 */
#include "probes/places.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STEPS    (64u << 20) /* entries that are looked at */
#define MAX_ABSTRACT 4096u       /* functions of one name */

struct walk {
	const struct dp_inline_query *q;
	struct dp_name_match match;
	struct dp_module *m;
	struct dp_debug *debug;
	struct dp_places *ret;
	const void *abstract[MAX_ABSTRACT]; /* where the entries are in memory: unique over all files */
	size_t nabstract, steps;
};

/* ---- the name ------------------------------------------------------------------------------------------------------ */

static const char *linkage_name(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	const bool found =
	        dwarf_attr_integrate(die, DW_AT_linkage_name, &attr) || dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr);
	return found ? dwarf_formstring(&attr) : NULL;
}

static bool is_named(const struct walk *w, Dwarf_Die *die)
{
	const char *name = dwarf_diename(die), *linkage;
	const bool word = *w->match.word && !strchr(w->match.text, '~');
	if (!name || (word && strncmp(name, w->match.word, strlen(w->match.word))))
		return false;
	if (strcmp(name, w->q->name) && !((linkage = linkage_name(die)) && dp_name_match_symbol(&w->match, linkage)))
		return false;
	const char *file = w->q->file ? dp_debug_decl_file(die) : NULL;
	return !w->q->file || (file && dp_path_ends(file, w->q->file));
}

/* ---- places -------------------------------------------------------------------------------------------------------- */

const char *dp_inline_called(Dwarf_Die *die)
{
	const char *linkage = linkage_name(die);
	return linkage ? linkage : dwarf_diename(die);
}

/* `copy`: the entry of what was inlined, or NULL. */
static void add(struct walk *w, uint64_t pc, const char *in, Dwarf_Die *copy)
{
	char *label = NULL;
	const char *called = copy ? dp_inline_called(copy) : NULL;
	if (in && asprintf(&label, "%s (inlined in %s)", w->q->name, in) < 0)
		label = NULL;
	struct dp_selected *one = dp_places_add(w->ret, w->m, dp_module_vaddr(w->m, dp_debug_addr(w->debug, pc)), in, label);
	if (one && called && !(one->inlined = strdup(called)))
		w->ret->failed = true;
}

static bool is_abstract(struct walk *w, const Dwarf_Die *die)
{
	for (size_t i = 0; i < w->nabstract; i++)
		if (w->abstract[i] == die->addr)
			return true;
	return false;
}

static void function(struct walk *w, Dwarf_Die *die)
{
	uint64_t pc;
	if (dwarf_hasattr(die, DW_AT_declaration) || !is_named(w, die))
		return;
	if (w->q->declared)
		w->q->declared(die, w->q->data);
	else if (!dp_inline_entry(die, &pc) && w->nabstract < MAX_ABSTRACT)
		w->abstract[w->nabstract++] = die->addr; /* with LTO DW_AT_inline is missing */
	else if (w->q->out_of_line && pc)
		add(w, pc, NULL, NULL);
}

/* ---- the walk ------------------------------------------------------------------------------------------------------ */

static bool holds_functions(int tag)
{
	return tag == DW_TAG_namespace || tag == DW_TAG_class_type || tag == DW_TAG_structure_type || tag == DW_TAG_module ||
	       tag == DW_TAG_union_type;
}

static void find_names(struct walk *w, Dwarf_Die *parent, unsigned depth)
{
	Dwarf_Die die;
	if (depth > DP_DEBUG_MAX_DEPTH || dwarf_child(parent, &die))
		return;
	do {
		const int tag = dwarf_tag(&die);
		if (tag == DW_TAG_subprogram)
			function(w, &die);
		else if (holds_functions(tag))
			find_names(w, &die, depth + 1);
	} while (w->steps++ < MAX_STEPS && !dwarf_siblingof(&die, &die));
}

static void copy(struct walk *w, Dwarf_Die *die, const char *in)
{
	Dwarf_Attribute attr;
	Dwarf_Die origin;
	uint64_t pc;
	if (dwarf_attr(die, DW_AT_abstract_origin, &attr) && dwarf_formref_die(&attr, &origin) && is_abstract(w, &origin) &&
	    dp_inline_entry(die, &pc))
		add(w, pc, in ? in : "?", die);
}

static void find_copies(struct walk *w, Dwarf_Die *parent, const char *in, unsigned depth)
{
	Dwarf_Die die;
	if (depth > DP_DEBUG_MAX_DEPTH || dwarf_child(parent, &die))
		return;
	do {
		const int tag = dwarf_tag(&die);
		const bool inlined = tag == DW_TAG_inlined_subroutine, scope = inlined || tag == DW_TAG_subprogram;
		if (inlined)
			copy(w, &die, in);
		if (scope || tag == DW_TAG_lexical_block || holds_functions(tag))
			find_copies(w, &die, scope ? dwarf_diename(&die) : in, depth + 1);
	} while (w->steps++ < MAX_STEPS && !dwarf_siblingof(&die, &die));
}

static void each_unit(struct walk *w, bool copies)
{
	Dwarf_CU *cursor = NULL;
	Dwarf_Die unit;
	while (dp_debug_next_unit(w->debug, &cursor, &unit))
		if (copies)
			find_copies(w, &unit, NULL, 0);
		else
			find_names(w, &unit, 0);
}

/* What dwz moved to another file: names only, there is no code. */
static void names_elsewhere(struct walk *w)
{
	Dwarf *alt = dwarf_getalt(w->debug->dwarf);
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;
	while (alt && dwarf_get_units(alt, cu, &cu, NULL, NULL, &unit, NULL) == 0)
		find_names(w, &unit, 0);
}

void dp_inline_find(struct dp_module *m, struct dp_debug *debug, const struct dp_inline_query *q, struct dp_places *ret)
{
	struct walk *w = calloc(1, sizeof(*w));
	if (!w || !dp_name_match_init(&w->match, q->name)) {
		free(w);
		ret->failed = true;
		return;
	}
	w->q = q;
	w->m = m;
	w->debug = debug;
	w->ret = ret;
	each_unit(w, false);
	names_elsewhere(w);
	w->steps = 0;
	if (w->nabstract && !q->declared)
		each_unit(w, true);
	dp_name_match_fini(&w->match);
	free(w);
}
