/* SPDX-License-Identifier: MIT */
/*
 * The unwind rule for a pc: from CFI (.eh_frame as mapped, else .debug_frame; read by libdw); without CFI, from the code's effect
 * on the stack; otherwise by the frame pointer.
 */
#include "agent/unwind/unwind.h"
#include "pmodules/frames/frames.h"
#include "probes/image/module.h"
#include "trampoline/trampoline.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

enum { CODE_MAX = 1 << 16, RAX = 0, RBX = 3 };

/* ---- call frame information ---------------------------------------------------------------------------------------------- */

static const Dwarf_Op *keep(struct dp_debug_ctx *w, const Dwarf_Op *ops, size_t n)
{
	Dwarf_Op *copy = dp_arena_alloc(&w->arena, n * sizeof(*copy));
	if (copy)
		memcpy(copy, ops, n * sizeof(*copy));
	return copy;
}

static struct dp_freg register_rule(struct dp_debug_ctx *w, Dwarf_Frame *frame, unsigned number)
{
	Dwarf_Op mem[3], *ops;
	size_t n;
	struct dp_freg r = {.kind = DP_FRULE_LOST};
	if (dwarf_frame_register(frame, (int)number, mem, &ops, &n))
		return r;
	if (!n) {
		/* Without a rule, libdw (0.188) treats rax as callee-saved, and not rbx: correct that. */
		const bool lost = number == RAX || (ops && number != RBX);
		r.kind = lost ? DP_FRULE_LOST : DP_FRULE_SAME;
		return r;
	}
	const bool value = ops[n - 1].atom == DW_OP_stack_value;
	const size_t k = value ? n - 1 : n;
	const bool by_cfa = k && ops[0].atom == DW_OP_call_frame_cfa;
	if (by_cfa && (k == 1 || (k == 2 && ops[1].atom == DW_OP_plus_uconst))) {
		r.kind = value ? DP_FRULE_IS_CFA : DP_FRULE_AT_CFA;
		r.off = k == 2 ? (int64_t)ops[1].number : 0;
	} else if (n == 1 && ((ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31) || ops[0].atom == DW_OP_regx)) {
		const uint64_t from = ops[0].atom == DW_OP_regx ? ops[0].number : ops[0].atom - (unsigned)DW_OP_reg0;
		r.kind = from < DP_SNAP_REGS ? DP_FRULE_REG : DP_FRULE_LOST;
		r.reg = (uint8_t)from;
	} else if ((r.ops = keep(w, ops, k)) != NULL) {
		r.kind = value ? DP_FRULE_IS_EXPR : DP_FRULE_AT_EXPR;
		r.n = k;
	}
	return r;
}

static bool cfa_rule(struct dp_debug_ctx *w, Dwarf_Frame *frame, struct dp_frule *rule)
{
	Dwarf_Op *ops;
	size_t n;
	if (dwarf_frame_cfa(frame, &ops, &n) || !n)
		return false;
	const unsigned atom = ops[0].atom;
	if (n == 1 && ((atom >= DW_OP_breg0 && atom <= DW_OP_breg16) || (atom == DW_OP_bregx && ops[0].number < DP_SNAP_REGS))) {
		rule->cfa_plain = true;
		rule->cfa_reg = (uint8_t)(atom == DW_OP_bregx ? ops[0].number : atom - (unsigned)DW_OP_breg0);
		rule->cfa_off = (int64_t)(atom == DW_OP_bregx ? ops[0].number2 : ops[0].number);
		return true;
	}
	rule->ops = keep(w, ops, n);
	rule->n = n;
	return rule->ops;
}

static bool by_table(struct dp_debug_ctx *w, Dwarf_CFI *cfi, uint64_t pc, struct dp_frule *rule)
{
	Dwarf_Frame *frame = NULL;
	Dwarf_Op mem[3], *ops;
	size_t n;
	bool is_signal = false;
	if (!cfi || dwarf_cfi_addrframe(cfi, pc, &frame))
		return false;
	*rule = (struct dp_frule){0};
	rule->is_known = cfa_rule(w, frame, rule) && dwarf_frame_info(frame, NULL, NULL, &is_signal) == (int)DP_FRAME_PC;
	rule->is_signal = is_signal;
	for (unsigned i = 0; i < DP_SNAP_REGS && rule->is_known; i++)
		rule->reg[i] = register_rule(w, frame, i);
	rule->is_end = rule->is_known && !dwarf_frame_register(frame, (int)DP_FRAME_PC, mem, &ops, &n) && !n && ops;
	free(frame);
	return rule->is_known;
}

static void open_tables(struct dp_debug_ctx *w, struct dp_debug_ctx_module *x)
{
	x->cfi_asked = true;
	if (x->module->elf && x->module->elf->elf)
		x->cfi = dwarf_getcfi_elf(x->module->elf->elf);
	struct dp_debug *debug = dp_module_debug_opened(x->module) ? dp_debug_ctx_debug(w, x->module) : NULL;
	x->debug_cfi = debug ? dwarf_getcfi(debug->dwarf) : NULL;
}

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

static struct dp_freg row_rule(int16_t rule)
{
	struct dp_freg r = {.kind = DP_FRULE_LOST};
	const int n = rule >> 3;
	switch (rule & 7) {
	case DP_UNWIND_SAME:
		r.kind = DP_FRULE_SAME;
		break;
	case DP_UNWIND_AT_CFA:
		r.kind = DP_FRULE_AT_CFA;
		r.off = 8 * (int64_t)n;
		break;
	case DP_UNWIND_VALUE:
		r.kind = DP_FRULE_IS_CFA;
		r.off = 8 * (int64_t)n;
		break;
	case DP_UNWIND_IN_REG:
		r.kind = DP_FRULE_REG;
		r.reg = dwarf_number((unsigned)n);
		break;
	default:
		break;
	}
	return r;
}

static bool from_row(const struct dp_unwind_row *row, struct dp_frule *rule)
{
	static const uint8_t at[7] = {3, DP_FRAME_RSP, DP_FRAME_RBP, 12, 13, 14, 15};
	if (row->kind != DP_UNWIND_REG)
		return false;
	*rule = (struct dp_frule){
	        .is_known = true, .is_guess = true, .cfa_plain = true, .cfa_reg = dwarf_number(row->reg), .cfa_off = row->off};
	for (unsigned i = 0; i < DP_SNAP_REGS; i++)
		rule->reg[i].kind = DP_FRULE_LOST;
	for (unsigned i = 0; i < sizeof(at); i++)
		rule->reg[at[i]] = row_rule(row->rule[i]);
	if ((row->rule[DP_UNWIND_RSP] & 7) == DP_UNWIND_SAME)
		rule->reg[DP_FRAME_RSP] = (struct dp_freg){.kind = DP_FRULE_IS_CFA};
	rule->reg[DP_FRAME_PC] = row_rule(row->rule[DP_UNWIND_RA]);
	return rule->reg[DP_FRAME_PC].kind == DP_FRULE_AT_CFA;
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

void dp_frame_rule(struct dp_debug_ctx *w, struct dp_fplan *p)
{
	struct dp_debug_ctx_module *x = p->module;
	if (!x)
		return;
	if (!x->cfi_asked)
		open_tables(w, x);
	if (by_table(w, x->cfi, dp_module_vaddr(x->module, dp_addr_of(p->pc)), &p->rule))
		return;
	if (x->debug_cfi && x->debug && by_table(w, x->debug_cfi, dp_debug_pc(x->debug, dp_addr_of(p->pc)), &p->rule))
		return;
	if (!by_code(w, p))
		p->rule = (struct dp_frule){0};
}
