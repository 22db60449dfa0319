/* SPDX-License-Identifier: MIT */
/*
 * Finds inlined functions. The debug information has an abstract entry for each inlined or cloned function; each copy has an
 * entry that refers to it. With LTO and dwz the two may be in different units. So units that contain the name are walked, then
 * those that refer to entries found there, then all of these for copies.
 */
#include "base/path.h"
#include "probes/debug/debug_names.h"
#include "probes/elf/demangle.h"
#include "probes/image/module.h"
#include "probes/point/source/source.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STEPS    (64u << 20) /* entries to visit */
#define MAX_ABSTRACT 4096u       /* functions with one name */
#define MAX_NAMED    16384u      /* their entries, with declarations */

struct walk {
	const struct dp_inline_query *q;
	struct dp_name_match match;
	struct dp_module *m;
	struct dp_debug *debug;
	struct dp_selection *ret;
	const void *abstract[MAX_ABSTRACT]; /* entries' addresses in memory: unique across files */
	size_t nabstract, steps;
	struct dp_debug_units units;
	uint32_t named[MAX_NAMED]; /* offsets of entries to which others may refer */
	size_t nnamed, asked;      /* asked: how many of these were searched already */
};

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

const char *dp_inline_called(Dwarf_Die *die)
{
	const char *linkage = linkage_name(die);
	return linkage ? linkage : dwarf_diename(die);
}

/* `copy`: entry of the inlined copy, or NULL. */
static void add(struct walk *w, uint64_t pc, const char *in, Dwarf_Die *copy)
{
	char *label = NULL;
	const char *called = copy ? dp_inline_called(copy) : NULL;
	if (in && asprintf(&label, "%s (inlined in %s)", w->q->name, in) < 0)
		label = NULL;
	struct dp_selected *one = dp_selection_add(w->ret, w->m, dp_module_vaddr(w->m, dp_debug_addr(w->debug, pc)), in, label);
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
	if (!is_named(w, die))
		return;
	if (w->nnamed < MAX_NAMED)
		w->named[w->nnamed++] = (uint32_t)dwarf_dieoffset(die);
	if (dwarf_hasattr(die, DW_AT_declaration))
		return;
	if (w->q->declared)
		w->q->declared(die, w->q->data);
	else if (!dp_inline_entry(die, &pc) && w->nabstract < MAX_ABSTRACT)
		w->abstract[w->nabstract++] = die->addr; /* with LTO, DW_AT_inline is missing */
	else if (w->q->out_of_line && pc)
		add(w, pc, NULL, NULL);
}

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

/* Entries of other units may refer to the found ones for their name: clones, and entries moved by dwz or the linker. */
static bool find_referring(struct walk *w)
{
	if (!w->units.refers || w->asked == w->nnamed)
		return false;
	w->asked = w->nnamed;
	if (w->nnamed == MAX_NAMED)
		dp_debug_units_mark_name(&w->units, NULL);
	else
		dp_debug_units_mark_words(&w->units, w->named, w->nnamed);
	return true;
}

static void walk_units(struct walk *w)
{
	const bool sure = *w->match.word && !w->match.glob && !strchr(w->match.text, '~');
	struct dp_debug_unit *one;
	dp_debug_units_mark_name(&w->units, sure ? w->match.word : NULL);
	do {
		while ((one = dp_debug_units_next(&w->units, true)))
			find_names(w, &one->die, 0);
	} while (find_referring(w));
	w->steps = 0;
	for (size_t i = 0; w->nabstract && !w->q->declared && i < w->units.n; i++) {
		one = &w->units.unit[i];
		if (one->walked && !one->alt)
			find_copies(w, &one->die, NULL, 0);
	}
}

void dp_inline_find(struct dp_module *m, struct dp_debug *debug, const struct dp_inline_query *q, struct dp_selection *ret)
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
	if (dp_debug_units_load(debug, &w->units))
		walk_units(w);
	else
		ret->failed = true;
	dp_debug_units_fini(&w->units);
	dp_name_match_fini(&w->match);
	free(w);
}
