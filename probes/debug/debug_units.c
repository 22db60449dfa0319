/* SPDX-License-Identifier: MIT */
/* Walks the units of debug information and finds the unit that has the code at an address. */
#include "probes/debug/debug_internal.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

static struct dp_debug_state *state_of(struct dp_debug *debug)
{
	return debug->state;
}

static const char *dwo_name(Dwarf_Die *skeleton)
{
	Dwarf_Attribute attr;
	const bool found = dwarf_attr(skeleton, DW_AT_dwo_name, &attr) || dwarf_attr(skeleton, DW_AT_GNU_dwo_name, &attr);
	return found ? dwarf_formstring(&attr) : NULL;
}

/* The entry with the content: for a skeleton, that of the .dwo file. */
static void whole(struct dp_debug_state *d, Dwarf_CU *cu, Dwarf_Die *ret)
{
	Dwarf_Die skeleton, split;
	memset(&split, 0, sizeof(split));
	if (dwarf_cu_info(cu, NULL, NULL, &skeleton, &split, NULL, NULL, NULL)) {
		memset(ret, 0, sizeof(*ret));
		return;
	}
	*ret = split.addr ? split : skeleton;
	const char *missing = split.addr ? NULL : dwo_name(&skeleton);
	if (missing && !d->missing)
		d->missing = strdup(missing);
}

const char *dp_debug_missing_dwo(const struct dp_debug *debug)
{
	return debug->state->missing;
}

bool dp_debug_next_unit(struct dp_debug *debug, Dwarf_CU **cursor, Dwarf_Die *ret)
{
	uint8_t type;
	Dwarf_CU *cu = *cursor;
	while (dwarf_get_units(debug->dwarf, cu, &cu, NULL, &type, NULL, NULL) == 0) {
		*cursor = cu;
		if (type == DW_UT_type || type == DW_UT_split_type)
			continue;
		whole(state_of(debug), cu, ret);
		if (ret->addr)
			return true;
	}
	return false;
}

static bool add_range(struct dp_debug_state *d, uint64_t start, uint64_t end, Dwarf_CU *cu)
{
	if (d->nranges == d->capacity) {
		const size_t capacity = d->capacity ? 2 * d->capacity : 256;
		struct dp_debug_range *grown = realloc(d->range, capacity * sizeof(*grown));
		if (!grown)
			return false;
		d->range = grown;
		d->capacity = capacity;
	}
	if (start < end)
		d->range[d->nranges++] = (struct dp_debug_range){start, end, cu};
	return true;
}

static int compare(const void *a, const void *b)
{
	const struct dp_debug_range *x = a, *y = b;
	return x->start < y->start ? -1 : x->start > y->start;
}

#define MAX_RANGES (4u << 20)

/* Ranges that start at 0 belong to code that the linker dropped. For a split unit the skeleton has the ranges. */
static void learn_ranges(struct dp_debug_state *d)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	d->ranges_known = true;
	while (dwarf_get_units(d->open.dwarf, cu, &cu, NULL, NULL, &die, NULL) == 0) {
		Dwarf_Addr base, start, end;
		for (ptrdiff_t at = 0; (at = dwarf_ranges(&die, at, &base, &start, &end)) > 0;)
			if ((start && !add_range(d, start, end, cu)) || d->nranges > MAX_RANGES)
				return;
	}
	if (d->nranges)
		qsort(d->range, d->nranges, sizeof(*d->range), compare);
}

/*
 * Uses the compiler's .debug_aranges, if there is one, instead of reading every unit. The table may lack units of other
 * compilers, so an entry counts only if the unit itself confirms it.
 */
static bool by_table(struct dp_debug_state *d, uint64_t pc, Dwarf_Die *ret)
{
	Dwarf_Aranges *table = NULL;
	Dwarf_Addr start;
	Dwarf_Off offset;
	size_t n;
	Dwarf_Die unit;
	d->table_fails = d->table_fails || dwarf_getaranges(d->open.dwarf, &table, &n);
	Dwarf_Arange *found = d->table_fails ? NULL : dwarf_getarange_addr(table, pc);
	if (!found || dwarf_getarangeinfo(found, &start, NULL, &offset) || !start ||
	    !dwarf_offdie(d->open.dwarf, offset, &unit) || dwarf_haspc(&unit, pc) <= 0)
		return false;
	whole(d, unit.cu, ret);
	return ret->addr;
}

bool dp_debug_unit_at(struct dp_debug *debug, uint64_t pc, Dwarf_Die *ret)
{
	struct dp_debug_state *d = state_of(debug);
	if (!d->ranges_known && by_table(d, pc, ret))
		return true;
	if (!d->ranges_known)
		learn_ranges(d);
	size_t lo = 0, hi = d->nranges;
	while (lo < hi) {
		const size_t mid = lo + (hi - lo) / 2;
		if (d->range[mid].start <= pc)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || pc >= d->range[lo - 1].end)
		return false;
	whole(d, d->range[lo - 1].cu, ret);
	return ret->addr;
}

bool dp_debug_line_at(struct dp_debug *debug, uint64_t pc, const char **path, int *line)
{
	Dwarf_Die unit;
	Dwarf_Line *l = dp_debug_unit_at(debug, pc, &unit) ? dwarf_getsrc_die(&unit, pc) : NULL;
	return l && !dwarf_lineno(l, line) && *line > 0 && (*path = dwarf_linesrc(l, NULL, NULL));
}

const char *dp_debug_decl_file(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Word index;
	Dwarf_Die unit;
	Dwarf_Files *files;
	size_t n;
	if (!dwarf_attr_integrate(die, DW_AT_decl_file, &attr) || dwarf_formudata(&attr, &index) ||
	    dwarf_cu_info(attr.cu, NULL, NULL, &unit, NULL, NULL, NULL, NULL) || dwarf_getsrcfiles(&unit, &files, &n) ||
	    index >= n)
		return NULL;
	return dwarf_filesrc(files, index, NULL, NULL);
}

bool dp_debug_lacks(const struct dp_debug *debug, const Dwarf_Die *unit, const char *name)
{
	const struct dp_debug_state *state = debug->state;
	for (unsigned i = 0; state->lacks.unit == unit->addr && i < state->lacks.n; i++)
		if (!strcmp(state->lacks.name[i], name))
			return true;
	return false;
}

void dp_debug_note_lack(struct dp_debug *debug, const Dwarf_Die *unit, const char *name)
{
	struct dp_debug_state *state = debug->state;
	if (state->lacks.unit != unit->addr) {
		state->lacks.unit = unit->addr;
		state->lacks.n = 0;
	}
	if (state->lacks.n < DP_DEBUG_LACKS && strlen(name) < sizeof(state->lacks.name[0]))
		strcpy(state->lacks.name[state->lacks.n++], name);
}
