/* SPDX-License-Identifier: MIT */
/*
 * The call section of a stub: the fields that the agent's C code fetches. Below the stub's own frame are
 *
 *	rbx ->	the site's rbx
 *		the registers that C code may change
 *		(alignment)
 *		struct dp_regs      only if there is a backtrace, or a snapshot
 *		struct dp_op        of a computed address
 *	rsp ->	struct dp_capture
 *
 * All are addressed from rbx, which C code preserves. Vector registers stay live, and the direction flag stays as it is: the
 * agent uses general registers only, and no string instruction; the sink's entry points handle both themselves.
 */
#include "trampoline/arch/x86_64/emit/capture.h"

enum {
	OP = (sizeof(struct dp_capture) + 15) & ~15u,
	REGS = OP + sizeof(struct dp_op),
	FRAME = REGS + sizeof(struct dp_regs),
	STUB_BYTES = 8, /* between rbx and what the stub pushed */
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

/* Addresses all from rbx: what the stub pushed, and what is pushed here. */
static struct dp_view make_view(const struct dp_view *stub)
{
	struct dp_view v = *stub;
	v.base = DP_RBX;
	for (unsigned r = 0; r < 16; r++)
		v.disp[r] += STUB_BYTES;
	v.rsp += STUB_BYTES;
	v.flags += STUB_BYTES;
	v.duration += v.duration ? STUB_BYTES : 0;
	v.call += v.call ? STUB_BYTES : 0;
	v.hits += v.hits ? STUB_BYTES : 0;
	view_saved(&v, DP_RBX, 0);
	for (unsigned i = 0; i < sizeof(clobbered); i++)
		view_saved(&v, clobbered[i], -8 * ((int32_t)i + 1));
	return v;
}

/* struct dp_regs, for the unwinder and for snapshots. Changes rax and rdx. */
static void fill_regs(struct dp_capture_code *c)
{
	for (unsigned r = 0; r < 16; r++) {
		struct dp_field f = {.source = DP_SRC_REG, .reg = (uint8_t)r, .size = 8};
		dp_capture_store(c->a, &c->view, &f, in_regs(offsetof(struct dp_regs, gpr) + 8 * r));
	}
	struct dp_field rip = {.source = DP_SRC_RIP, .size = 8}, rflags = {.source = DP_SRC_RFLAGS, .size = 8};
	dp_capture_store(c->a, &c->view, &rip, in_regs(offsetof(struct dp_regs, rip)));
	dp_capture_store(c->a, &c->view, &rflags, in_regs(offsetof(struct dp_regs, rflags)));
}

static void save(struct dp_capture_code *c)
{
	dp_asm_push(c->a, DP_RBX);
	dp_asm_mov_store(c->a, 8, DP_RSP, dp_rm_reg(DP_RBX));
	for (size_t i = 0; i < sizeof(clobbered); i++)
		dp_asm_push(c->a, clobbered[i]);
	dp_asm_lea(c->a, dp_rm_mem(DP_RSP, dp_fields_registers(c->fields) ? -FRAME : -REGS), DP_RSP);
	dp_asm_alu_imm(c->a, DP_ALU_AND, 8, -16, dp_rm_reg(DP_RSP));
}

static void restore(struct dp_capture_code *c)
{
	dp_asm_lea(c->a, dp_rm_mem(DP_RBX, -8 * (int64_t)sizeof(clobbered)), DP_RSP);
	for (size_t i = sizeof(clobbered); i > 0; i--)
		dp_asm_pop(c->a, clobbered[i - 1]);
	dp_asm_pop(c->a, DP_RBX);
}

/* struct dp_capture from rcx (record) and rsi (slot), and the payload's mask. */
static void fill_capture(struct dp_capture_code *c)
{
	size_t at = sizeof(struct dp_record);
	dp_asm_mov_const(c->a, dp_capture_none(c->fields), DP_RAX);
	if (dp_fields_may_fault(c->fields)) {
		dp_asm_mov_store(c->a, 8, DP_RAX, dp_rm_mem(DP_RCX, (int64_t)at));
		at += DP_MASK_BYTES;
	}
	dp_asm_mov_const(c->a, 0, DP_RAX);
	if (dp_fields_registers(c->fields))
		dp_asm_lea(c->a, in_regs(0), DP_RAX);
	dp_asm_mov_store(c->a, 8, DP_RAX, in_capture(offsetof(struct dp_capture, regs)));
	dp_asm_mov_store(c->a, 8, DP_RCX, in_capture(offsetof(struct dp_capture, record)));
	dp_asm_mov_store(c->a, 8, DP_RSI, in_capture(offsetof(struct dp_capture, slot)));
	dp_asm_lea_label(c->a, c->desc, DP_RAX);
	dp_asm_mov_store(c->a, 8, DP_RAX, in_capture(offsetof(struct dp_capture, desc)));
	dp_asm_lea(c->a, dp_rm_mem(DP_RCX, (int64_t)at), DP_RAX);
	dp_asm_mov_store(c->a, 8, DP_RAX, in_capture(offsetof(struct dp_capture, cursor)));
}

static uint64_t helper_of(const struct dp_runtime *rt, enum dp_source_kind source)
{
	return source == DP_SRC_MEMORY   ? rt->read
	       : source == DP_SRC_STRING ? rt->string
	       : source == DP_SRC_PARK   ? rt->park
	                                 : rt->backtrace;
}

static enum dp_count count_of(const struct dp_field *f)
{
	if (!f->count)
		return f->is_array ? DP_COUNT_ARRAY : DP_COUNT_NONE;
	return f->count_is_signed ? DP_COUNT_SIGNED : DP_COUNT_UNSIGNED;
}

/* struct dp_op with the address in rax. A string's length has waited in the address's place, and goes to rdx. */
static void fill_op(struct dp_capture_code *c, const struct dp_field *f, size_t i)
{
	struct dp_op op = {.size = f->size, .field = (uint16_t)i, .count = (uint16_t)count_of(f)};
	_Static_assert(offsetof(struct dp_op, count) == 14 && offsetof(struct dp_op, field) == 12 &&
	                       offsetof(struct dp_op, size) == 8,
	               "one word");
	if (f->count)
		dp_asm_mov_load(c->a, 8, dp_rm_mem(DP_RSP, OP), DP_RDX);
	dp_asm_mov_store(c->a, 8, DP_RAX, dp_rm_mem(DP_RSP, OP));
	dp_asm_mov_const(c->a, op.size | (uint64_t)op.field << 32 | (uint64_t)op.count << 48, DP_RAX);
	dp_asm_mov_store(c->a, 8, DP_RAX, dp_rm_mem(DP_RSP, OP + 8));
	dp_asm_lea(c->a, dp_rm_mem(DP_RSP, OP), DP_RSI);
}

/* helper(capture, operation) */
static void call_helper(struct dp_capture_code *c, size_t i, size_t op)
{
	const struct dp_field *f = &c->fields->field[i];
	if (dp_capture_is_computed(f)) {
		if (f->count) {
			dp_capture_compute_count(c, i);
			dp_asm_mov_store(c->a, 8, DP_RAX, dp_rm_mem(DP_RSP, OP));
		}
		dp_capture_compute(c, i);
		dp_asm_bind(c->a, c->field[i].back);
		fill_op(c, f, i);
	} else {
		dp_asm_lea_label(c->a, c->desc, DP_RSI);
		dp_asm_alu_imm(c->a, DP_ALU_ADD, 8, (int32_t)(sizeof(struct dp_probe_desc) + op * sizeof(struct dp_op)),
		               dp_rm_reg(DP_RSI));
	}
	dp_asm_mov_store(c->a, 8, DP_RSP, dp_rm_reg(DP_RDI));
	dp_asm_call(c->a, helper_of(&c->rt, f->source), DP_RAX);
}

/* A field that cannot be computed: 0, or an address that is never mapped, with a length for which it is read. */
void dp_capture_put_aside_called(struct dp_capture_code *c, size_t i)
{
	const struct dp_field *f = &c->fields->field[i];
	if (!dp_capture_is_computed(f))
		return;
	dp_exits_put(c->a, &c->field[i].exits);
	if (f->source == DP_SRC_EXPR) {
		struct dp_rm mask = dp_rm_mem(DP_RAX, (int64_t)(sizeof(struct dp_record) + i / 8));
		dp_asm_mov_load(c->a, 8, in_capture(offsetof(struct dp_capture, record)), DP_RAX);
		dp_asm_alu_imm(c->a, DP_ALU_OR, 1, 1 << i % 8, mask);
		dp_asm_mov_const(c->a, 0, DP_RAX);
	} else {
		dp_asm_mov_const(c->a, UINT64_C(1) << 62, DP_RAX);
		if (f->count)
			dp_asm_mov_store(c->a, 8, DP_RAX, dp_rm_mem(DP_RSP, OP));
		dp_asm_shift(c->a, DP_SHIFT_SHL, 1, DP_RAX);
	}
	dp_asm_jmp(c->a, c->field[i].back);
}

static unsigned store_one(struct dp_capture_code *c, size_t i, unsigned at)
{
	const struct dp_field *f = &c->fields->field[i];
	if (f->source != DP_SRC_EXPR)
		return dp_capture_store(c->a, &c->view, f, dp_rm_mem(DP_RSI, at));
	dp_capture_compute(c, i);
	if (dp_capture_may_fail(f))
		dp_asm_bind(c->a, c->field[i].back);
	dp_capture_store_value(c, i, dp_rm_mem(DP_RSI, at));
	return f->size;
}

/* Stores a run of fields that need no call at the cursor, and moves it. Returns the next field. */
static size_t store_run(struct dp_capture_code *c, size_t i)
{
	unsigned n = 0;
	struct dp_rm cursor = in_capture(offsetof(struct dp_capture, cursor));
	dp_asm_mov_load(c->a, 8, cursor, DP_RSI);
	for (; i < c->fields->n && !dp_capture_is_called(c, &c->fields->field[i]); i++)
		n += store_one(c, i, n);
	dp_asm_alu_imm(c->a, DP_ALU_ADD, 8, (int32_t)n, cursor);
	return i;
}

void dp_capture_call(struct dp_capture_code *c)
{
	c->view = make_view(&c->view);
	save(c);
	if (dp_fields_registers(c->fields))
		fill_regs(c);
	fill_capture(c);
	for (size_t i = 0, op = 0; i < c->fields->n;) {
		if (dp_capture_is_called(c, &c->fields->field[i]))
			call_helper(c, i++, op++);
		else
			i = store_run(c, i);
	}
	dp_asm_mov_store(c->a, 8, DP_RSP, dp_rm_reg(DP_RDI));
	dp_asm_call(c->a, c->rt.enter ? c->rt.emit_capture : c->rt.finish, DP_RAX);
	restore(c);
}
