/* SPDX-License-Identifier: MIT */
/*
 * Finds the functions around an address. The outermost entries with code of a unit are sorted by address once, when the unit is
 * asked first: a pattern's probes ask for thousands of functions of one unit, in the order of their names.
 */
#include "probes/debug/debug_internal.h"

#include <dwarf.h>
#include <stdlib.h>
#include <uthash.h>

#define MAX_STEPS (1u << 22) /* entries and ranges of one unit that are visited */

struct code {
	uint64_t start, end;
	uint64_t most; /* the highest end up to here */
	void *die;     /* ascending in one start: the first of equal functions is found */
};

struct dp_debug_scopes {
	const void *unit;  /* its entry's address */
	struct code *code; /* ascending starts */
	size_t n, capacity;
	unsigned steps;
	UT_hash_handle hh;
};

static bool is_scope(int tag)
{
	return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine;
}

static bool may_contain_code(int tag)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
		return true;
	default:
		return false;
	}
}

static bool add(struct dp_debug_scopes *u, uint64_t start, uint64_t end, void *die)
{
	if (u->n == u->capacity) {
		const size_t capacity = u->capacity ? 2 * u->capacity : 64;
		struct code *grown = realloc(u->code, capacity * sizeof(*grown));
		if (!grown)
			return false;
		u->code = grown;
		u->capacity = capacity;
	}
	u->code[u->n++] = (struct code){.start = start, .end = end, .die = die};
	return true;
}

static bool add_ranges(struct dp_debug_scopes *u, Dwarf_Die *die)
{
	Dwarf_Addr base, start, end;
	for (ptrdiff_t at = 0; (at = dwarf_ranges(die, at, &base, &start, &end)) > 0;)
		if (u->steps++ > MAX_STEPS || (start < end && !add(u, start, end, die->addr)))
			return false;
	return true;
}

/* Adds what `parent` contains, also in containers without ranges of their own. */
static bool collect(struct dp_debug_scopes *u, Dwarf_Die *parent, unsigned depth)
{
	Dwarf_Die die;
	if (depth > DP_DEBUG_MAX_DEPTH || dwarf_child(parent, &die))
		return true;
	do {
		const int tag = dwarf_tag(&die);
		if (u->steps++ > MAX_STEPS)
			return false;
		if (is_scope(tag) || tag == DW_TAG_lexical_block ? !add_ranges(u, &die)
		                                                 : may_contain_code(tag) && !collect(u, &die, depth + 1))
			return false;
	} while (!dwarf_siblingof(&die, &die));
	return true;
}

static int compare(const void *a, const void *b)
{
	const struct code *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->die < y->die ? -1 : x->die > y->die;
}

static void sort(struct dp_debug_scopes *u)
{
	uint64_t most = 0;
	if (u->n)
		qsort(u->code, u->n, sizeof(*u->code), compare);
	for (size_t i = 0; i < u->n; i++) {
		most = u->code[i].end > most ? u->code[i].end : most;
		u->code[i].most = most;
	}
}

/* What was collected before an end by MAX_STEPS or for want of memory counts. NULL: no memory at all. */
static struct dp_debug_scopes *scopes_of(struct dp_debug_state *state, Dwarf_Die *unit)
{
	struct dp_debug_scopes *u;
	HASH_FIND_PTR(state->scopes, &unit->addr, u);
	if (u || !(u = calloc(1, sizeof(*u))))
		return u;
	u->unit = unit->addr;
	collect(u, unit, 0);
	sort(u);
	HASH_ADD_PTR(state->scopes, unit, u);
	return u;
}

void dp_debug_scopes_destroy(struct dp_debug_scopes *scopes)
{
	struct dp_debug_scopes *u, *next;
	HASH_ITER(hh, scopes, u, next)
	{
		HASH_DEL(scopes, u);
		free(u->code);
		free(u);
	}
}

struct search {
	uint64_t pc;
	Dwarf_Die *found;
	size_t n, max;
	unsigned steps;
};

static bool descend(struct search *s, Dwarf_Die *parent, unsigned depth);

/* Adds scopes on the way back, so the innermost comes first. */
static bool holds(struct search *s, Dwarf_Die *die, unsigned depth)
{
	const int tag = dwarf_tag(die);
	const bool scope = is_scope(tag);
	if (!scope && tag != DW_TAG_lexical_block && !may_contain_code(tag))
		return false;
	if ((scope || tag == DW_TAG_lexical_block) && dwarf_haspc(die, s->pc) <= 0)
		return false;
	if (!descend(s, die, depth + 1) && !scope)
		return false;
	if (scope && s->n < s->max)
		s->found[s->n++] = *die;
	return true;
}

static bool descend(struct search *s, Dwarf_Die *parent, unsigned depth)
{
	Dwarf_Die die;
	if (depth > DP_DEBUG_MAX_DEPTH || dwarf_child(parent, &die))
		return false;
	do {
		if (s->steps++ > MAX_STEPS)
			return false;
		if (holds(s, &die, depth))
			return true;
	} while (!dwarf_siblingof(&die, &die));
	return false;
}

/* The number of entries that start at or before `pc`. */
static size_t before(const struct dp_debug_scopes *u, uint64_t pc)
{
	size_t lo = 0, hi = u->n;
	while (lo < hi) {
		const size_t mid = lo + (hi - lo) / 2;
		if (u->code[mid].start <= pc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Of the entries at `pc`, the one that comes first in the unit. */
static void search_unit(struct search *s, const struct dp_debug_scopes *u, Dwarf *dwarf)
{
	const struct code *first = NULL;
	for (size_t i = before(u, s->pc); i && u->code[i - 1].most > s->pc && s->steps++ < MAX_STEPS; i--) {
		const struct code *c = &u->code[i - 1];
		if (c->end > s->pc && (!first || c->die < first->die))
			first = c;
	}
	Dwarf_Die die;
	if (first && dwarf_die_addr_die(dwarf, first->die, &die))
		holds(s, &die, 0);
}

size_t dp_debug_scopes_at(struct dp_debug *debug, uint64_t pc, Dwarf_Die *scopes, size_t max)
{
	Dwarf_Die unit;
	struct search s = {.pc = pc, .found = scopes, .max = max};
	const struct dp_debug_scopes *u = dp_debug_unit_at(debug, pc, &unit) ? scopes_of(debug->state, &unit) : NULL;
	if (u)
		search_unit(&s, u, dwarf_cu_getdwarf(unit.cu));
	return s.n;
}
