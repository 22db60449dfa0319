/* SPDX-License-Identifier: MIT */
/*
 * The call section of a stub: the fields that the agent's C code fetches. Below the stub's own frame lie
 *
 *	rbx ->	the site's rbx
 *		the registers that C code may change
 *		(alignment)
 *		struct dp_regs      only if there is a backtrace
 *	rsp ->	struct dp_capture
 *
 * and rbx, which C code preserves, finds it all again. Vector registers stay live, and the direction flag stays as it is: the
 * agent uses general registers only, and no string instruction; the sink's entry points see to both themselves.
 */
#include "trampoline/arch/x86_64/capture.h"

enum {
	REGS = (sizeof(struct dp_capture) + 15) & ~15u,
	FRAME = REGS + sizeof(struct dp_regs),
	STUB_BYTES = 8, /* between rbx and what the stub pushed */
};

struct section {
	struct dp_asm *a;
	const struct dp_runtime *rt;
	const struct dp_fields *fields;
	struct dp_label desc;
	struct dp_view view;
};

static const uint8_t clobbered[] = {DP_RDI, DP_R8, DP_R9, DP_R10, DP_R11};

static struct dp_rm in_capture(size_t offset)
{
	return dp_rm_mem(DP_RSP, (int64_t)offset);
}

static struct dp_rm in_regs(size_t offset)
{
	return dp_rm_mem(DP_RSP, (int64_t)(REGS + offset));
}

static void view_saved(struct dp_view *v, unsigned reg, int32_t disp)
{
	v->saved |= (uint16_t)(1u << reg);
	v->disp[reg] = disp;
}

/* Everything from rbx: what the stub pushed, and what we push. */
static struct dp_view make_view(const struct dp_view *stub)
{
	struct dp_view v = *stub;
	v.base = DP_RBX;
	for (unsigned r = 0; r < 16; r++)
		v.disp[r] += STUB_BYTES;
	v.rsp += STUB_BYTES;
	v.flags += STUB_BYTES;
	view_saved(&v, DP_RBX, 0);
	for (unsigned i = 0; i < sizeof(clobbered); i++)
		view_saved(&v, clobbered[i], -8 * ((int32_t)i + 1));
	return v;
}

/* struct dp_regs, for the unwinder. Changes rax and rdx. */
static void fill_regs(struct section *s)
{
	for (unsigned r = 0; r < 16; r++) {
		struct dp_field f = {.source = DP_SRC_REG, .reg = (uint8_t)r, .size = 8};
		dp_capture_store(s->a, &s->view, &f, in_regs(offsetof(struct dp_regs, gpr) + 8 * r));
	}
	struct dp_field rip = {.source = DP_SRC_RIP, .size = 8}, rflags = {.source = DP_SRC_RFLAGS, .size = 8};
	dp_capture_store(s->a, &s->view, &rip, in_regs(offsetof(struct dp_regs, rip)));
	dp_capture_store(s->a, &s->view, &rflags, in_regs(offsetof(struct dp_regs, rflags)));
}

static void save(struct section *s)
{
	dp_asm_push(s->a, DP_RBX);
	dp_asm_mov_store(s->a, 8, DP_RSP, dp_rm_reg(DP_RBX));
	for (size_t i = 0; i < sizeof(clobbered); i++)
		dp_asm_push(s->a, clobbered[i]);
	dp_asm_lea(s->a, dp_rm_mem(DP_RSP, dp_fields_unwind(s->fields) ? -FRAME : -REGS), DP_RSP);
	dp_asm_alu_imm(s->a, DP_ALU_AND, 8, -16, dp_rm_reg(DP_RSP));
}

static void restore(struct section *s)
{
	dp_asm_lea(s->a, dp_rm_mem(DP_RBX, -8 * (int64_t)sizeof(clobbered)), DP_RSP);
	for (size_t i = sizeof(clobbered); i > 0; i--)
		dp_asm_pop(s->a, clobbered[i - 1]);
	dp_asm_pop(s->a, DP_RBX);
}

/* struct dp_capture from rcx (record) and rsi (slot), and the payload's mask. */
static void fill_capture(struct section *s)
{
	size_t at = sizeof(struct dp_record);
	dp_asm_mov_const(s->a, 0, DP_RAX);
	if (dp_fields_may_fault(s->fields)) {
		dp_asm_mov_store(s->a, 8, DP_RAX, dp_rm_mem(DP_RCX, (int64_t)at));
		at += DP_MASK_BYTES;
	}
	if (dp_fields_unwind(s->fields))
		dp_asm_lea(s->a, in_regs(0), DP_RAX);
	dp_asm_mov_store(s->a, 8, DP_RAX, in_capture(offsetof(struct dp_capture, regs)));
	dp_asm_mov_store(s->a, 8, DP_RCX, in_capture(offsetof(struct dp_capture, record)));
	dp_asm_mov_store(s->a, 8, DP_RSI, in_capture(offsetof(struct dp_capture, slot)));
	dp_asm_lea_label(s->a, s->desc, DP_RAX);
	dp_asm_mov_store(s->a, 8, DP_RAX, in_capture(offsetof(struct dp_capture, desc)));
	dp_asm_lea(s->a, dp_rm_mem(DP_RCX, (int64_t)at), DP_RAX);
	dp_asm_mov_store(s->a, 8, DP_RAX, in_capture(offsetof(struct dp_capture, cursor)));
}

static uint64_t helper_of(const struct dp_runtime *rt, enum dp_source_kind source)
{
	return source == DP_SRC_MEMORY ? rt->read : source == DP_SRC_STRING ? rt->string : rt->backtrace;
}

/* helper(capture, operation) */
static void call_helper(struct section *s, const struct dp_field *f, size_t op)
{
	dp_asm_mov_store(s->a, 8, DP_RSP, dp_rm_reg(DP_RDI));
	dp_asm_lea_label(s->a, s->desc, DP_RSI);
	dp_asm_alu_imm(s->a, DP_ALU_ADD, 8, (int32_t)(sizeof(struct dp_probe_desc) + op * sizeof(struct dp_op)),
	               dp_rm_reg(DP_RSI));
	dp_asm_call(s->a, helper_of(s->rt, f->source), DP_RAX);
}

/* Stores a run of fields that need no call at the cursor, and moves it. Returns the field behind them. */
static size_t store_run(struct section *s, size_t i)
{
	unsigned n = 0;
	struct dp_rm cursor = in_capture(offsetof(struct dp_capture, cursor));
	dp_asm_mov_load(s->a, 8, cursor, DP_RCX);
	for (; i < s->fields->n && !dp_capture_is_called(&s->fields->field[i]); i++)
		n += dp_capture_store(s->a, &s->view, &s->fields->field[i], dp_rm_mem(DP_RCX, n));
	dp_asm_alu_imm(s->a, DP_ALU_ADD, 8, (int32_t)n, cursor);
	return i;
}

void dp_capture_call(struct dp_asm *a, const struct dp_view *view, const struct dp_runtime *rt, const struct dp_fields *fields,
                     struct dp_label desc)
{
	struct section s = {.a = a, .rt = rt, .fields = fields, .desc = desc};
	s.view = make_view(view);
	save(&s);
	if (dp_fields_unwind(fields))
		fill_regs(&s);
	fill_capture(&s);
	for (size_t i = 0, op = 0; i < fields->n;) {
		if (dp_capture_is_called(&fields->field[i]))
			call_helper(&s, &fields->field[i++], op++);
		else
			i = store_run(&s, i);
	}
	dp_asm_mov_store(a, 8, DP_RSP, dp_rm_reg(DP_RDI));
	dp_asm_call(a, rt->enter ? rt->emit_capture : rt->finish, DP_RAX);
	restore(&s);
}
