/* SPDX-License-Identifier: MIT */
/*
 * Inlined functions that start at the site. gcc may start a copy at an instruction outside of its ranges (DW_AT_entry_pc, with a
 * location view number), and several copies at one instruction. By its address alone the site would belong to the surrounding
 * function, whose variables may have the same names.
 */
#include "probes/point/source/source.h"
#include "probes/expr/scope/scope_internal.h"

#include <dwarf.h>
#include <string.h>

enum { STEPS_MAX = 1 << 20 };

struct search {
	struct dp_scope *s;
	Dwarf_Die path[DP_SCOPE_FUNCTIONS]; /* outermost first */
	size_t depth;
	Dwarf_Die found[DP_SCOPE_FUNCTIONS];
	size_t nfound;
	unsigned matches, steps;
};

static bool is_wanted(const struct dp_scope *s, Dwarf_Die *die)
{
	const char *name = dp_inline_called(die);
	return name && s->at.inlined && !strcmp(name, s->at.inlined);
}

/* A copy inlined in itself counts once: the outer one starts first. */
static bool begins_in_found(const struct search *f)
{
	return f->nfound && f->depth > f->nfound && f->path[f->nfound - 1].addr == f->found[f->nfound - 1].addr;
}

static void take(struct search *f, Dwarf_Die *die)
{
	struct dp_scope *s = f->s;
	if (!s->at.inlined && dwarf_haspc(die, s->pc) <= 0 && s->nbeginning < DP_SCOPE_FUNCTIONS)
		s->beginning[s->nbeginning++] = *die;
	if (!is_wanted(s, die) || begins_in_found(f))
		return;
	memcpy(f->found, f->path, f->depth * sizeof(*f->path));
	f->nfound = f->depth;
	f->matches++;
}

/* A copy without DW_AT_entry_pc starts in its ranges. Checking them is faster than computing the start. */
static bool may_begin(const struct dp_scope *s, Dwarf_Die *die)
{
	return dwarf_hasattr(die, DW_AT_entry_pc) || dwarf_haspc(die, s->pc) > 0;
}

static void descend(struct search *f, Dwarf_Die *parent, unsigned depth)
{
	Dwarf_Die die;
	uint64_t pc;
	if (depth > DP_DEBUG_MAX_DEPTH || dwarf_child(parent, &die))
		return;
	do {
		const int tag = dwarf_tag(&die);
		const bool inlined = tag == DW_TAG_inlined_subroutine;
		if (!inlined && tag != DW_TAG_lexical_block && tag != DW_TAG_try_block && tag != DW_TAG_catch_block)
			continue;
		if (inlined && f->depth == DP_SCOPE_FUNCTIONS - 1)
			continue;
		if (inlined)
			f->path[f->depth++] = die;
		if (inlined && may_begin(f->s, &die) && dp_inline_entry(&die, &pc) && pc == f->s->pc)
			take(f, &die);
		descend(f, &die, depth + 1);
		f->depth -= inlined;
	} while (f->steps++ < STEPS_MAX && !dwarf_siblingof(&die, &die));
}

/* Sets the functions around the site to the copy and its callers, innermost first. */
static void enter(struct dp_scope *s, const struct search *f)
{
	const Dwarf_Die outer = *dp_scope_outer(s);
	for (size_t i = 0; i < f->nfound; i++)
		s->function[i] = f->found[f->nfound - 1 - i];
	s->function[f->nfound] = outer;
	s->nfunctions = f->nfound + 1;
}

struct dp_error *dp_scope_inlined(struct dp_scope *s)
{
	Dwarf_Die *outer = dp_scope_outer(s);
	struct search *f = dp_arena_alloc(&s->arena, sizeof(*f));
	if (!f)
		return dp_error_nomem();
	f->s = s;
	if (outer)
		descend(f, outer, 0);
	if (!s->at.inlined)
		return NULL;
	if (f->matches != 1)
		return dp_error(DP_TAG_NO_VALUE,
		                "by the debug information, %s of '%s' start%s at the probe, so its variables are unknown",
		                f->matches ? "more than one inlined copy" : "no inlined copy", s->at.inlined,
		                f->matches ? "" : "s");
	enter(s, f);
	return NULL;
}

bool dp_scope_is_beginning(struct dp_scope *s, Dwarf_Die *function)
{
	uint64_t pc;
	return dwarf_tag(function) == DW_TAG_inlined_subroutine && may_begin(s, function) && dp_inline_entry(function, &pc) && pc == s->pc;
}
