/* SPDX-License-Identifier: MIT */
/*
 * Call sites: a function's calls and tail calls, from debug information (DWARF 5, 3.4). If the target of one tail call is
 * unknown, nothing is concluded from any of them.
 */
#include "pmodules/frames/frames.h"
#include "probes/dwarf/type.h"
#include "probes/image/module.h"

#include <dwarf.h>
#include <string.h>

enum { STEPS_MAX = 1 << 16, DEPTH_MAX = 64, JUMPS_MAX = 256, SCOPES_MAX = 64 };

struct dp_ffunction {
	struct dp_ffunction *chain;
	uint64_t entry;
	bool is_known;
	struct dp_fsite *jump;
	size_t n;
};

bool dp_die_entry(Dwarf_Die *die, Dwarf_Addr *ret)
{
	Dwarf_Addr base, end;
	return !dwarf_entrypc(die, ret) || dwarf_ranges(die, 0, &base, ret, &end) > 0;
}

uint64_t dp_frames_entry(const struct dp_fplan *p)
{
	return p->entry ? p->entry : p->start;
}

/* ---- the target of a call ------------------------------------------------------------------------------------------------- */

static const char *linkage_of(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr) || dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr))
		return dwarf_formstring(&attr);
	return dwarf_diename(die);
}

/* The target's address, from its DIE, or by its linkage name if it is in another unit or module; 0: by a pointer, or unknown. */
static uint64_t target_of(struct dp_debug_ctx *w, struct dp_debug *debug, Dwarf_Die *site)
{
	Dwarf_Attribute attr;
	Dwarf_Die origin;
	Dwarf_Addr entry;
	uint64_t at;
	if ((!dwarf_attr(site, DW_AT_call_origin, &attr) && !dwarf_attr(site, DW_AT_abstract_origin, &attr)) ||
	    !dwarf_formref_die(&attr, &origin))
		return 0;
	if (dp_die_entry(&origin, &entry))
		return dp_debug_addr(debug, entry).v;
	const char *name = dp_die_flag(&origin, DW_AT_declaration) || dwarf_hasattr_integrate(&origin, DW_AT_external)
	                           ? linkage_of(&origin)
	                           : NULL;
	return name && dp_debug_ctx_symbol(w, name, NULL, &at) ? at : 0;
}

static bool return_of(Dwarf_Die *site, Dwarf_Addr *ret)
{
	Dwarf_Attribute attr;
	return (dwarf_attr(site, DW_AT_call_return_pc, &attr) || dwarf_attr(site, DW_AT_low_pc, &attr)) &&
	       !dwarf_formaddr(&attr, ret);
}

/* ---- a function's calls ------------------------------------------------------------------------------------------------- */

struct search {
	struct dp_debug_ctx *w;
	struct dp_debug *debug;
	uint64_t pc; /* find the call that returns there; 0: find all tail calls */
	unsigned steps;
	struct dp_fsite *site;
	size_t n, max;
};

static bool is_wanted(struct search *s, Dwarf_Die *die, Dwarf_Addr *at)
{
	const int tag = dwarf_tag(die);
	if ((tag != DW_TAG_call_site && tag != DW_TAG_GNU_call_site) || !return_of(die, at))
		return false;
	return s->pc ? *at == s->pc : dp_die_flag(die, DW_AT_call_tail_call) || dp_die_flag(die, DW_AT_GNU_tail_call);
}

/* Returns false to stop. */
static bool find_sites(struct search *s, Dwarf_Die *parent, unsigned depth)
{
	Dwarf_Die die;
	Dwarf_Addr at;
	if (depth > DEPTH_MAX || dwarf_child(parent, &die))
		return true;
	do {
		const int tag = dwarf_tag(&die);
		if (++s->steps > STEPS_MAX || s->n == s->max)
			return false;
		if (is_wanted(s, &die, &at))
			s->site[s->n++] = (struct dp_fsite){.die = die, .pc = dp_debug_addr(s->debug, at).v};
		else if ((tag == DW_TAG_lexical_block || tag == DW_TAG_inlined_subroutine) && !find_sites(s, &die, depth + 1))
			return false;
	} while (!dwarf_siblingof(&die, &die));
	return true;
}

static struct dp_fsite *keep(struct dp_debug_ctx *w, struct search *s)
{
	struct dp_fsite *site = s->n ? dp_arena_alloc(&w->arena, s->n * sizeof(*site)) : NULL;
	for (size_t i = 0; site && i < s->n; i++) {
		site[i] = s->site[i];
		site[i].target = target_of(w, s->debug, &site[i].die);
	}
	return site;
}

struct dp_fsite *dp_frames_site(struct dp_frames *f, struct dp_fplan *p)
{
	struct dp_fsite one;
	if (p->site_asked)
		return p->site;
	p->site_asked = true;
	if (p->exact || !p->debug || !p->real.addr)
		return NULL;
	struct search s = {.w = f->w, .debug = p->debug, .pc = p->dpc + 1, .site = &one, .max = 1};
	find_sites(&s, &p->real, 0);
	p->site = keep(f->w, &s);
	return p->site;
}

/* ---- functions ---------------------------------------------------------------------------------------------------------- */

/* Finds the DIE of the function that starts at `entry`. */
static bool function_at(struct dp_frames *f, struct dp_debug *debug, uint64_t entry, Dwarf_Die *ret)
{
	Dwarf_Die die[SCOPES_MAX];
	Dwarf_Addr at;
	size_t i = 0;
	const size_t n = dp_debug_scopes_at(debug, dp_debug_pc(debug, dp_addr_of(entry)), die, SCOPES_MAX);
	while (i < n && dwarf_tag(&die[i]) != DW_TAG_subprogram)
		i++;
	if (i < n) {
		*ret = die[i];
	} else { /* it may be inside another function's DIE; the plan searches there */
		struct dp_fplan *p = dp_frames_plan(f, entry, true);
		if (!p)
			return false;
		dp_frames_mean(f, p);
		*ret = p->real;
	}
	return ret->addr && dp_die_entry(ret, &at) && dp_debug_addr(debug, at).v == entry;
}

static bool learn(struct dp_frames *f, struct dp_ffunction *fn)
{
	struct dp_fsite found[JUMPS_MAX];
	Dwarf_Die die;
	struct dp_debug_ctx_module *m = dp_debug_ctx_module_at(f->w, fn->entry);
	struct dp_debug *debug = m ? dp_debug_ctx_debug(f->w, m->module) : NULL;
	struct search s = {.w = f->w, .debug = debug, .site = found, .max = JUMPS_MAX};
	if (!debug || !function_at(f, debug, fn->entry, &die) || !find_sites(&s, &die, 0))
		return false;
	fn->jump = keep(f->w, &s);
	fn->n = fn->jump ? s.n : 0;
	return fn->n == s.n;
}

bool dp_frames_jumps(struct dp_frames *f, uint64_t entry, struct dp_fsite **ret, size_t *n)
{
	struct dp_ffunction **slot = &f->function[(entry * UINT64_C(0x9e3779b97f4a7c15)) >> 55 & (DP_FFUNCTIONS - 1)],
	                    *fn = *slot;
	while (fn && fn->entry != entry)
		fn = fn->chain;
	if (!fn) {
		fn = dp_arena_alloc(&f->w->arena, sizeof(*fn));
		if (!fn)
			return false;
		*fn = (struct dp_ffunction){.chain = *slot, .entry = entry};
		*slot = fn;
		fn->is_known = learn(f, fn);
	}
	*ret = fn->jump;
	*n = fn->n;
	return fn->is_known;
}
