/* SPDX-License-Identifier: MIT */
/* The step from a frame to its caller. Expressions in rules see the frame's registers, its CFA and the memory, nothing else. */
#include "probes/dwarf/dwarf_machine.h"
#include "probes/frame/frame.h"

struct frame {
	const struct dp_frame_regs *regs;
	uint64_t cfa; /* 0: unknown */
	const struct dp_frame_memory *memory;
};

struct dp_frame_regs dp_frame_regs_of(const struct user_regs_struct *r)
{
	return (struct dp_frame_regs){{r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8, r->r9, r->r10,
	                               r->r11, r->r12, r->r13, r->r14, r->r15, r->rip},
	                              (1u << DP_DWARF_REGS) - 1};
}

/* ---- expressions ---------------------------------------------------------------------------------------------------------- */

static const char *reg(struct dp_dwarf_machine *m, uint64_t number, union dp_dwarf_value *ret)
{
	const struct dp_frame_regs *regs = ((const struct frame *)m->data)->regs;
	if (number >= DP_DWARF_REGS || !(regs->known >> number & 1))
		return DP_ABSENT_OPTIMIZED;
	ret->number = regs->value[number];
	return NULL;
}

static const char *load(struct dp_dwarf_machine *m, union dp_dwarf_value addr, unsigned size, union dp_dwarf_value *ret)
{
	const struct dp_frame_memory *memory = ((const struct frame *)m->data)->memory;
	ret->number = 0;
	return memory->get(memory->data, addr.number, &ret->number, size) ? NULL : DP_ABSENT_UNKNOWN;
}

static const char *cfa(struct dp_dwarf_machine *m, union dp_dwarf_value *ret)
{
	ret->number = ((const struct frame *)m->data)->cfa;
	return ret->number ? NULL : DP_ABSENT_OPTIMIZED;
}

static const struct dp_dwarf_back back = {.constant = dp_dwarf_number,
                                          .reg = reg,
                                          .load = load,
                                          .apply = dp_dwarf_number_apply,
                                          .cast = dp_dwarf_number_cast,
                                          .is_number = dp_dwarf_number_get,
                                          .cfa = cfa};

static bool evaluate(struct frame *f, const struct dp_freg *r, uint64_t *ret)
{
	struct dp_dwarf_machine m;
	union dp_dwarf_value v = {0};
	unsigned steps = DP_DWARF_STEPS;
	dp_dwarf_start(&m, &back, f, &steps);
	dp_dwarf_run(&m, r->ops, r->n);
	if (m.result != DP_DWARF_REGISTER)
		v = dp_dwarf_pop(&m).value;
	else
		dp_dwarf_fail(&m, reg(&m, m.reg, &v));
	*ret = v.number;
	return !m.why && !m.npieces && m.result != DP_DWARF_BLOCK;
}

/* ---- rules ---------------------------------------------------------------------------------------------------------------- */

static bool recover(struct frame *f, const struct dp_freg *r, uint64_t *ret)
{
	switch (r->kind) {
	case DP_FREG_REG:
		*ret = f->regs->value[r->reg];
		if (!(f->regs->known >> r->reg & 1))
			return false;
		break;
	case DP_FREG_CFA:
		*ret = f->cfa;
		break;
	case DP_FREG_EXPR:
		if (!evaluate(f, r, ret))
			return false;
		break;
	default:
		return false;
	}
	*ret += (uint64_t)r->off;
	return !r->in_memory || f->memory->get(f->memory->data, *ret, ret, sizeof(*ret));
}

uint64_t dp_frule_cfa(const struct dp_frule *rule, const struct dp_frame_regs *regs, const struct dp_frame_memory *memory)
{
	struct frame f = {.regs = regs, .memory = memory};
	uint64_t v;
	return rule->is_known && recover(&f, &rule->cfa, &v) ? v : 0;
}

bool dp_frule_step(const struct dp_frule *rule, const struct dp_frame_regs *regs, uint64_t cfa,
                   const struct dp_frame_memory *memory, struct dp_frame_regs *ret)
{
	struct frame f = {.regs = regs, .cfa = cfa, .memory = memory};
	uint64_t v;
	*ret = (struct dp_frame_regs){0};
	for (unsigned i = 0; i < DP_DWARF_REGS; i++)
		if (recover(&f, &rule->reg[i], &v)) {
			ret->value[i] = v;
			ret->known |= 1u << i;
		}
	return ret->known >> DP_FRAME_PC & 1;
}
