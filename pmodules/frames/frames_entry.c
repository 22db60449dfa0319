/* SPDX-License-Identifier: MIT */
/*
 * A register's value at the entry of a function, from the caller's DW_TAG_call_site (DWARF 5, 3.4). Only if the call is known to
 * lead directly to this function.
 */
#include "pmodules/frames/frames.h"
#include "probes/expr/scope/scope_internal.h"
#include "probes/image/image_internal.h"

#include <dwarf.h>

enum { STEPS_MAX = 1 << 16 };

/* Does the call lead to the callee itself, not through tail calls? */
static bool leads_to(const struct dp_eval *e, struct dp_fsite *site, uint64_t callee)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;
	uint64_t target;
	struct dp_eval at_call = *e;
	if (site->target)
		return site->target == callee;
	at_call.attr = &attr;
	return (dwarf_attr(&site->die, DW_AT_call_target, &attr) || dwarf_attr(&site->die, DW_AT_GNU_call_site_target, &attr)) &&
	       !dwarf_getlocation(&attr, &ops, &n) && n && !dp_eval_number(&at_call, ops, n, &target) && target == callee;
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

const char *dp_frames_entry_value(const struct dp_eval *e, unsigned reg, uint64_t *ret)
{
	const struct dp_fstate *f = e->frame, *caller = f ? f->caller : NULL;
	if (!caller || !caller->plan->debug || f->is_signal || caller->exact || caller->is_guess)
		return DP_WHY_OPTIMIZED;
	struct dp_fplan *p = caller->plan;
	const struct dp_eval at_call = {.w = e->w,
	                                .frame = caller,
	                                .base = &p->base,
	                                .entry = e->entry,
	                                .frames = e->frames,
	                                .module = p->module->module,
	                                .debug = p->debug,
	                                .nesting = e->nesting + 1,
	                                .steps = e->steps};
	struct dp_fsite *site = dp_frames_site(e->frames, p);
	const uint64_t callee = dp_frames_entry(f->plan);
	/* A tail call back to the function's entry would have changed the arguments. */
	if (!site || !callee || !leads_to(&at_call, site, callee) || dp_frames_may_return(e->frames, callee))
		return DP_WHY_OPTIMIZED;
	return value_at_call(&at_call, &site->die, reg, ret);
}
