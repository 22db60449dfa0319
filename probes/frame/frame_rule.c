/* SPDX-License-Identifier: MIT */
/* The unwind rule for a pc, from call frame information that libdw reads. */
#include "probes/dwarf/dwarf_machine.h"
#include "probes/frame/frame.h"
#include "probes/image/module.h"

#include <stdlib.h>

enum { RAX = 0, RBX = 3 };

static struct dp_freg of_register(uint64_t number, int64_t off)
{
	return (struct dp_freg){.kind = number < DP_DWARF_REGS ? DP_FREG_REG : DP_FREG_LOST, .reg = (uint8_t)number, .off = off};
}

static struct dp_freg register_rule(Dwarf_Frame *frame, unsigned number)
{
	Dwarf_Op mem[3], *ops;
	size_t n;
	uint64_t from;
	if (dwarf_frame_register(frame, (int)number, mem, &ops, &n))
		return (struct dp_freg){.kind = DP_FREG_LOST};
	if (!n) {
		/* Without a rule, libdw (0.188) treats rax as callee-saved, and not rbx: correct that. */
		const bool lost = number == RAX || (ops && number != RBX);
		return lost ? (struct dp_freg){.kind = DP_FREG_LOST} : of_register(number, 0);
	}
	if (n == 1 && dp_dwarf_is_register(ops, &from))
		return of_register(from, 0);
	struct dp_freg r = {.kind = DP_FREG_EXPR, .in_memory = ops[n - 1].atom != DW_OP_stack_value, .ops = ops};
	r.n = r.in_memory ? n : n - 1;
	if (r.n && r.n <= 2 && ops[0].atom == DW_OP_call_frame_cfa && (r.n == 1 || ops[1].atom == DW_OP_plus_uconst)) {
		r.kind = DP_FREG_CFA;
		r.off = r.n == 2 ? (int64_t)ops[1].number : 0;
	}
	return r;
}

/* libdw keeps expressions (the kind DP_FREG_EXPR) as long as the table; other operations are only in `frame` and `mem`. */
static bool cfa_rule(Dwarf_Frame *frame, struct dp_freg *ret)
{
	Dwarf_Op *ops;
	size_t n;
	uint64_t number, off;
	if (dwarf_frame_cfa(frame, &ops, &n) || !n)
		return false;
	*ret = n == 1 && dp_dwarf_is_based(ops, &number, &off) ? of_register(number, (int64_t)off)
	                                                       : (struct dp_freg){.kind = DP_FREG_EXPR, .ops = ops, .n = n};
	return true;
}

bool dp_frule_find(Dwarf_CFI *cfi, uint64_t pc, struct dp_frule *ret)
{
	Dwarf_Frame *frame = NULL;
	Dwarf_Op mem[3], *ops;
	size_t n;
	*ret = (struct dp_frule){0};
	if (!cfi || dwarf_cfi_addrframe(cfi, pc, &frame))
		return false;
	ret->is_known = cfa_rule(frame, &ret->cfa) && dwarf_frame_info(frame, NULL, NULL, &ret->is_signal) == (int)DP_FRAME_PC;
	for (unsigned i = 0; i < DP_DWARF_REGS && ret->is_known; i++)
		ret->reg[i] = register_rule(frame, i);
	ret->is_end = ret->is_known && !dwarf_frame_register(frame, (int)DP_FRAME_PC, mem, &ops, &n) && !n && ops;
	free(frame);
	return ret->is_known;
}

bool dp_frule_of_module(struct dp_module *m, dp_addr pc, struct dp_frule *ret)
{
	return dp_frule_find(m->elf ? dp_elf_cfi(m->elf) : NULL, dp_module_vaddr(m, pc), ret);
}
