/* SPDX-License-Identifier: MIT */
/*
 * What a register held when a function was called: the caller's DW_TAG_call_site says how it made its arguments (DWARF 5, 3.4).
 * Only where the call is known to have led straight to this function. And where thread-locals are.
 */
#include "agent/abi.h"
#include "pmodules/frames.h"
#include "probes/image.h"
#include "probes/scope_internal.h"

#include <dwarf.h>
#include <string.h>

enum { STEPS_MAX = 1 << 16, DEPTH_MAX = 64 };

static bool return_of(Dwarf_Die *site, Dwarf_Addr *ret)
{
	Dwarf_Attribute attr;
	return (dwarf_attr(site, DW_AT_call_return_pc, &attr) || dwarf_attr(site, DW_AT_low_pc, &attr)) &&
	       !dwarf_formaddr(&attr, ret);
}

static bool find_site(Dwarf_Die *parent, uint64_t pc, unsigned *steps, unsigned depth, Dwarf_Die *ret)
{
	Dwarf_Die die;
	Dwarf_Addr at;
	if (depth > DEPTH_MAX || dwarf_child(parent, &die))
		return false;
	do {
		const int tag = dwarf_tag(&die);
		if (++*steps > STEPS_MAX)
			return false;
		if ((tag == DW_TAG_call_site || tag == DW_TAG_GNU_call_site) && return_of(&die, &at) && at == pc) {
			*ret = die;
			return true;
		}
		if ((tag == DW_TAG_lexical_block || tag == DW_TAG_inlined_subroutine) &&
		    find_site(&die, pc, steps, depth + 1, ret))
			return true;
	} while (!dwarf_siblingof(&die, &die));
	return false;
}

static const char *linkage_of(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr) || dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr))
		return dwarf_formstring(&attr);
	return dwarf_diename(die);
}

/* Does the call lead to the callee itself, not to one that has jumped on to it? */
static bool leads_to(const struct dp_eval *e, Dwarf_Die *site, const struct dp_fplan *callee)
{
	Dwarf_Attribute attr;
	Dwarf_Die origin;
	Dwarf_Op *ops;
	size_t n;
	uint64_t target;
	if ((dwarf_attr(site, DW_AT_call_origin, &attr) || dwarf_attr(site, DW_AT_abstract_origin, &attr)) &&
	    dwarf_formref_die(&attr, &origin)) {
		const char *name = linkage_of(&origin);
		return name && callee->called && !strcmp(name, callee->called);
	}
	struct dp_eval at_call = *e;
	at_call.attr = &attr;
	if ((dwarf_attr(site, DW_AT_call_target, &attr) || dwarf_attr(site, DW_AT_GNU_call_site_target, &attr)) &&
	    !dwarf_getlocation(&attr, &ops, &n) && n)
		return callee->entry && !dp_eval_number(&at_call, ops, n, &target) && target == callee->entry;
	return false;
}

static bool is_of_register(Dwarf_Die *parameter, unsigned reg)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;
	return dwarf_attr(parameter, DW_AT_location, &attr) && !dwarf_getlocation(&attr, &ops, &n) && n == 1 &&
	       ops[0].atom == DW_OP_reg0 + reg;
}

static const char *value_at_call(const struct dp_eval *e, Dwarf_Die *site, unsigned reg, uint64_t *ret)
{
	Dwarf_Die die;
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;
	unsigned steps = 0;
	if (dwarf_child(site, &die))
		return DP_WHY_OPTIMIZED;
	do {
		const int tag = dwarf_tag(&die);
		if ((tag != DW_TAG_call_site_parameter && tag != DW_TAG_GNU_call_site_parameter) || !is_of_register(&die, reg))
			continue;
		if ((!dwarf_attr(&die, DW_AT_call_value, &attr) && !dwarf_attr(&die, DW_AT_GNU_call_site_value, &attr)) ||
		    dwarf_getlocation(&attr, &ops, &n) || !n)
			return DP_WHY_OPTIMIZED;
		struct dp_eval at_call = *e;
		at_call.attr = &attr;
		return dp_eval_number(&at_call, ops, n, ret);
	} while (steps++ < STEPS_MAX && !dwarf_siblingof(&die, &die));
	return DP_WHY_OPTIMIZED;
}

const char *dp_eval_entry(const struct dp_eval *e, unsigned reg, uint64_t *ret)
{
	const struct dp_fstate *f = e->frame, *caller = f ? f->caller : NULL;
	unsigned steps = 0;
	if (!caller || !caller->plan->debug || !caller->plan->real.addr || f->is_signal || caller->exact || caller->is_guess)
		return DP_WHY_OPTIMIZED;
	struct dp_fplan *p = caller->plan;
	const uint64_t pc = dp_debug_pc(p->debug, dp_addr_of(caller->regs.value[DP_FRAME_PC]));
	const struct dp_eval at_call = {.w = e->w,
	                                .frame = caller,
	                                .module = p->module->module,
	                                .debug = p->debug,
	                                .nesting = e->nesting + 1,
	                                .steps = e->steps};
	if (!p->site_asked && !find_site(&p->real, pc, &steps, 0, &p->site))
		p->site.addr = NULL;
	p->site_asked = true;
	if (!p->site.addr || !leads_to(&at_call, &p->site, f->plan))
		return DP_WHY_OPTIMIZED;
	return value_at_call(&at_call, &p->site, reg, ret);
}

/* ---- thread-local storage -------------------------------------------------------------------------------------------------- */

static bool read_for(uint64_t addr, void *buf, size_t n, void *data)
{
	return dp_world_get(data, addr, buf, n, NULL);
}

const char *dp_eval_tls(const struct dp_eval *e, uint64_t offset, uint64_t *ret)
{
	static const struct dp_regs none;
	const char *absent = "where the thread-local storage of its module is, is not known";
	struct dp_world *w = e->w;
	if (!w->fs_base || !e->module)
		return absent;
	struct dp_scope s = {.image = w->image, .debug = e->debug};
	s.at.site.module = e->module;
	s.at.site.addr = e->module->start;
	struct dp_expr *addr = dp_location_thread_local(&s, dp_build_const(&s.arena, offset), &absent);
	const struct dp_expr_world world = {.regs = &none, .thread = w->fs_base, .read = read_for, .data = w};
	const bool known = addr && dp_expr_eval_in(addr, &world, ret) && *ret > 4096 && *ret < UINT64_C(1) << 47;
	dp_arena_fini(&s.arena);
	return known ? NULL : absent;
}
