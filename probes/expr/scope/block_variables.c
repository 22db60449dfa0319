/* SPDX-License-Identifier: MIT */
/* Walks the variables of blocks. Debug information may be damaged, so walks are bounded. */
#include "probes/expr/scope/scope_internal.h"

#include <dwarf.h>
#include <stdlib.h>

enum { DEPTH_MAX = 64, STEPS_MAX = 1 << 16, ORIGINS_MAX = 4 };

static bool is_block(int tag)
{
	return tag == DW_TAG_lexical_block || tag == DW_TAG_try_block || tag == DW_TAG_catch_block;
}

/* A block without addresses is treated as part of the enclosing block. */
static bool has_addresses(Dwarf_Die *block)
{
	return dwarf_hasattr(block, DW_AT_low_pc) || dwarf_hasattr(block, DW_AT_ranges);
}

static bool is_variable(Dwarf_Die *die)
{
	return dwarf_tag(die) == DW_TAG_variable && !dp_die_flag(die, DW_AT_declaration);
}

static void own_variables(struct dp_block_walk *w, Dwarf_Die *block, unsigned depth)
{
	Dwarf_Die child;
	if (depth > DEPTH_MAX || dwarf_child(block, &child))
		return;
	do {
		if (is_variable(&child))
			w->each(&child, w->data);
		else if (is_block(dwarf_tag(&child)) && !has_addresses(&child))
			own_variables(w, &child, depth + 1);
	} while (w->steps++ < STEPS_MAX && !dwarf_siblingof(&child, &child));
}

/* Is a child of the copy an instance of this part of the origin? */
static bool is_copied(struct dp_block_walk *w, Dwarf_Die *copy, Dwarf_Die *part)
{
	Dwarf_Die child, origin;
	if (dwarf_child(copy, &child))
		return false;
	do {
		Dwarf_Die at = child;
		for (unsigned i = 0; i < ORIGINS_MAX && dp_die_origin(&at, &origin); i++, at = origin)
			if (origin.addr == part->addr)
				return true;
	} while (w->steps++ < STEPS_MAX && !dwarf_siblingof(&child, &child));
	return false;
}

/* Lists variables that the inlined copy lacks, from its abstract origin. */
static void lost_variables(struct dp_block_walk *w, Dwarf_Die *copy)
{
	Dwarf_Die origin, child;
	if (!dp_die_origin(copy, &origin) || dwarf_child(&origin, &child))
		return;
	do {
		const bool block = is_block(dwarf_tag(&child));
		if ((!block && dwarf_tag(&child) != DW_TAG_variable) || is_copied(w, copy, &child))
			continue;
		if (block)
			own_variables(w, &child, 1);
		else if (is_variable(&child))
			w->each(&child, w->data);
	} while (w->steps++ < STEPS_MAX && !dwarf_siblingof(&child, &child));
}

static void walk_block(struct dp_block_walk *w, Dwarf_Die *block, unsigned depth)
{
	Dwarf_Die child;
	own_variables(w, block, 0);
	if (w->lost)
		lost_variables(w, block);
	if (depth > DEPTH_MAX || dwarf_child(block, &child))
		return;
	do {
		if (is_block(dwarf_tag(&child)) && has_addresses(&child) && dwarf_haspc(&child, w->pc) > 0)
			walk_block(w, &child, depth + 1);
	} while (w->steps++ < STEPS_MAX && !dwarf_siblingof(&child, &child));
}

void dp_block_variables(struct dp_block_walk *w, Dwarf_Die *block)
{
	w->steps = 0;
	walk_block(w, block, 0);
}

uint64_t dp_function_body(Dwarf_Die *function, uint64_t entry)
{
	Dwarf_Addr *at = NULL;
	uint64_t body = entry;
	for (int n = dwarf_entry_breakpoints(function, &at), i = 0; i < n; i++)
		if (at[i] > body && dwarf_haspc(function, at[i]) > 0)
			body = at[i];
	free(at);
	return body;
}
