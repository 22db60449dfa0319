/* SPDX-License-Identifier: MIT */
/*
 * Parameters of copied functions. A copy lists those it still has: gcc's in any order, clang's without optimized-out ones. The
 * abstract origin has the function's declaration.
 */
#include "probes/expr/scope/scope_internal.h"

#include <dwarf.h>
#include <string.h>

enum { DEPTH_MAX = 32, STEPS_MAX = 1 << 16 };

/* Go lists a function's results as parameters, too. (In Pascal the flag means something else.) */
static bool is_result(Dwarf_Die *parameter)
{
	Dwarf_Die unit;
	return dp_die_flag(parameter, DW_AT_variable_parameter) && dwarf_diecu(parameter, &unit, NULL, NULL) &&
	       dp_die_unit_is_go(&unit);
}

static size_t list(Dwarf_Die *function, Dwarf_Die *ret, size_t max)
{
	Dwarf_Die child;
	size_t n = 0;
	if (dwarf_child(function, &child))
		return 0;
	do {
		if (dwarf_tag(&child) == DW_TAG_formal_parameter && n < max && !is_result(&child))
			ret[n++] = child;
	} while (!dwarf_siblingof(&child, &child));
	return n;
}

/* Replaces the origin's entry by the copy's own, taken from the n entries not used yet. */
static bool put(Dwarf_Die *place, Dwarf_Die *own, size_t n)
{
	Dwarf_Die origin;
	for (size_t i = 0; i < n; i++)
		if (own[i].addr && dp_die_origin(&own[i], &origin) && origin.addr == place->addr) {
			*place = own[i];
			own[i].addr = NULL;
			return true;
		}
	return false;
}

/*
 * True if a parameter that the copy lacks still counts. A function of its own lists all that it is passed: gcc drops a
 * constructor's hidden parameters (__in_chrg, __vtt_parm). An inlined copy has lost others; clang's may have lost `this`.
 */
static bool is_kept(Dwarf_Die *function, Dwarf_Die *lost)
{
	const char *name = dwarf_diename(lost);
	return dwarf_tag(function) == DW_TAG_inlined_subroutine &&
	       (!dp_die_flag(lost, DW_AT_artificial) || (name && !strcmp(name, "this")));
}

size_t dp_parameters_of(Dwarf_Die *function, Dwarf_Die *ret, size_t max)
{
	Dwarf_Die origin, own[DP_PARAMETERS_MAX];
	const size_t n = list(function, own, DP_PARAMETERS_MAX);
	const size_t declared = dp_die_origin(function, &origin) ? list(&origin, ret, max) : 0;
	size_t k = 0;
	for (size_t i = 0; i < declared; i++)
		if (put(&ret[i], own, n) || is_kept(function, &ret[i]))
			ret[k++] = ret[i];
	/* Parameters that the origin lacks: a clone's, or all of a function without an origin. */
	for (size_t i = 0; i < n && k < max; i++)
		if (own[i].addr)
			ret[k++] = own[i];
	return k;
}

static bool declares(Dwarf_Die *block, const char *name, unsigned depth, unsigned *steps, Dwarf_Die *ret)
{
	Dwarf_Die child;
	if (depth > DEPTH_MAX || dwarf_child(block, &child))
		return false;
	do {
		const int tag = dwarf_tag(&child);
		if (++*steps > STEPS_MAX)
			return false;
		const char *own = tag == DW_TAG_formal_parameter || tag == DW_TAG_variable ? dwarf_diename(&child) : NULL;
		if (own && !dp_die_flag(&child, DW_AT_declaration) && !strcmp(own, name)) {
			*ret = child;
			return true;
		}
		if (tag == DW_TAG_lexical_block && declares(&child, name, depth + 1, steps, ret))
			return true;
	} while (!dwarf_siblingof(&child, &child));
	return false;
}

bool dp_parameters_lost(Dwarf_Die *function, const char *name, Dwarf_Die *ret)
{
	Dwarf_Die origin;
	unsigned steps = 0;
	return dwarf_tag(function) == DW_TAG_inlined_subroutine && dp_die_origin(function, &origin) &&
	       declares(&origin, name, 0, &steps, ret);
}
