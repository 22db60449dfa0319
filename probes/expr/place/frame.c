/* SPDX-License-Identifier: MIT */
/* The base of a function's locals: the canonical frame address, from call frame information, or a register. */
#include "probes/expr/scope/scope_internal.h"
#include "probes/image/module.h"

#include <dwarf.h>
#include <stdlib.h>

static struct dp_expr *cfa_by(struct dp_scope *s, Dwarf_CFI *cfi, uint64_t pc)
{
	Dwarf_Frame *frame = NULL;
	Dwarf_Op *ops;
	size_t n;
	const char *absent;
	struct dp_expr *cfa = NULL;
	if (cfi && !dwarf_cfi_addrframe(cfi, pc, &frame) && !dwarf_frame_cfa(frame, &ops, &n) && n)
		cfa = dp_location_value(s, NULL, ops, n, &absent);
	free(frame);
	return cfa;
}

/* Uses .eh_frame of the mapped file, else .debug_frame of the debug information. */
struct dp_expr *dp_frame_cfa(struct dp_scope *s)
{
	const struct dp_module *m = s->at.site.module;
	if (s->cfa_asked)
		return s->cfa;
	s->cfa_asked = true;
	s->cfa = m && m->elf ? cfa_by(s, dp_elf_cfi(m->elf), dp_module_vaddr(m, s->at.site.addr)) : NULL;
	if (!s->cfa && s->debug)
		s->cfa = cfa_by(s, dwarf_getcfi(s->debug->dwarf), s->pc);
	return s->cfa;
}

/*
 * In functions with a frame pointer clang's offsets count from rbp. That is valid only between prologue and epilogue: where the
 * call frame information uses rbp as well.
 */
static bool frame_pointer_stands(struct dp_scope *s)
{
	enum { RBP = 5 };
	const struct dp_expr *cfa = dp_frame_cfa(s);
	return cfa && cfa->kind == DP_EXPR_BINARY && cfa->a->kind == DP_EXPR_REG && cfa->a->reg == RBP;
}

struct dp_expr *dp_frame_base(struct dp_scope *s, const char **absent)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;
	Dwarf_Die *function = dp_scope_outer(s);
	if (!function || !dwarf_attr_integrate(function, DW_AT_frame_base, &attr) ||
	    dwarf_getlocation_addr(&attr, s->pc, &ops, &n, 1) != 1 || !n) {
		*absent = DP_ABSENT_OPTIMIZED;
		return NULL;
	}
	if (n == 1 && ops[0].atom == DW_OP_reg6 && !frame_pointer_stands(s)) {
		*absent = s->at.point == DP_POINT_RETURN ? DP_ABSENT_GONE : DP_ABSENT_NOT_SET;
		return NULL;
	}
	return dp_location_value(s, &attr, ops, n, absent);
}
