/* SPDX-License-Identifier: MIT */
/*
 * The unwind rule for a pc: from CFI (.eh_frame as mapped, else .debug_frame); without CFI, from the code's effect on the stack;
 * otherwise by the frame pointer (frames_walk.c).
 */
#include "agent/unwind/unwind.h"
#include "pmodules/frames/frames.h"
#include "probes/image/module.h"
#include "trampoline/trampoline.h"

#include <stdlib.h>

enum { CODE_MAX = 1 << 16 };

/* ---- code without CFI ----------------------------------------------------------------------------------------------------- */

struct follow {
	uint32_t offset;
	struct dp_unwind_row row;
	bool any;
};

static void take_row(uint32_t offset, const struct dp_unwind_row *row, void *data)
{
	struct follow *f = data;
	if (offset > f->offset)
		return;
	f->row = *row;
	f->any = true;
}

/* Converts the agent's register numbering (struct dp_regs) to DWARF's. */
static uint8_t dwarf_number(unsigned gpr)
{
	static const uint8_t number[16] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};
	return number[gpr & 15];
}

/* The rule for a register, `own` in DWARF's numbering. */
static struct dp_freg row_rule(int16_t rule, uint8_t own)
{
	const int n = rule >> 3;
	switch (rule & 7) {
	case DP_UNWIND_SAME:
		return (struct dp_freg){.kind = own == DP_FRAME_RSP ? DP_FREG_CFA : DP_FREG_REG, .reg = own};
	case DP_UNWIND_AT_CFA:
		return (struct dp_freg){.kind = DP_FREG_CFA, .in_memory = true, .off = 8 * (int64_t)n};
	case DP_UNWIND_VALUE:
		return (struct dp_freg){.kind = DP_FREG_CFA, .off = 8 * (int64_t)n};
	case DP_UNWIND_IN_REG:
		return (struct dp_freg){.kind = DP_FREG_REG, .reg = dwarf_number((unsigned)n)};
	default:
		return (struct dp_freg){.kind = DP_FREG_LOST};
	}
}

static bool from_row(const struct dp_unwind_row *row, struct dp_frule *rule)
{
	static const uint8_t at[7] = {3, DP_FRAME_RSP, DP_FRAME_RBP, 12, 13, 14, 15};
	if (row->kind != DP_UNWIND_REG)
		return false;
	*rule = (struct dp_frule){.is_known = true, .cfa = {.kind = DP_FREG_REG, .reg = dwarf_number(row->reg), .off = row->off}};
	for (unsigned i = 0; i < sizeof(at); i++)
		rule->reg[at[i]] = row_rule(row->rule[i], at[i]);
	rule->reg[DP_FRAME_PC] = row_rule(row->rule[DP_UNWIND_RA], DP_FRAME_PC);
	return rule->reg[DP_FRAME_PC].kind == DP_FREG_CFA && rule->reg[DP_FRAME_PC].in_memory;
}

static bool by_code(struct dp_debug_ctx *w, struct dp_fplan *p)
{
	struct dp_function fn;
	uint8_t *code = NULL;
	size_t n;
	if (!dp_image_function_at(w->image, dp_addr_of(p->pc), &fn) || !fn.size || fn.size > CODE_MAX || fn.module->vdso)
		return false;
	n = fn.size;
	code = malloc(n);
	struct follow f = {.offset = (uint32_t)(p->pc - fn.start.v)};
	struct dp_error *err = code ? dp_module_text(fn.module, fn.start, code, &n) : NULL;
	if (code && !err)
		dp_stack_effect(code, n, take_row, &f);
	dp_error_destroy(err);
	free(code);
	return f.any && from_row(&f.row, &p->rule);
}

/* Uses .debug_frame only if the debug information is open already: opening it may take long. */
static bool by_debug_frame(struct dp_debug_ctx *w, struct dp_fplan *p)
{
	struct dp_module *m = p->module->module;
	const struct dp_debug *debug = dp_module_debug_opened(m) ? dp_debug_ctx_debug(w, m) : NULL;
	return debug && dp_frule_find(dwarf_getcfi(debug->dwarf), dp_debug_pc(debug, dp_addr_of(p->pc)), &p->rule);
}

void dp_frames_rule(struct dp_debug_ctx *w, struct dp_fplan *p)
{
	if (!p->module || dp_frule_of_module(p->module->module, dp_addr_of(p->pc), &p->rule) || by_debug_frame(w, p))
		return;
	p->is_guess = by_code(w, p);
	if (!p->is_guess)
		p->rule = (struct dp_frule){0};
}
