/* SPDX-License-Identifier: MIT */
/*
 * DWARF's expressions, run in a frame whose registers are known (DWARF 5, 2.5 and 2.6). What is not understood, or would need
 * what is lost, is a value that is not there: never a wrong one.
 */
#include "pmodules/frames_machine.h"

#include <dwarf.h>
#include <string.h>

enum { STEPS_MAX = 4096, NESTING_MAX = 4, PIECES_MAX = 4096 };

/* ---- what the frame knows ------------------------------------------------------------------------------------------------- */

static void push_reg(struct dp_eval_machine *m, uint64_t number, uint64_t offset)
{
	uint64_t v;
	if (dp_eval_reg(m, number, &v))
		dp_eval_push(m, v + offset);
}

static void frame_base(struct dp_eval_machine *m, uint64_t offset)
{
	const struct dp_fstate *f = m->e->frame;
	const struct dp_fplan *p = f ? f->plan : NULL;
	struct dp_eval e = *m->e;
	uint64_t v;
	if (!p || !p->has_base || e.nesting >= NESTING_MAX) {
		dp_eval_fail(m, DP_WHY_OPTIMIZED);
		return;
	}
	e.nesting++;
	e.attr = (Dwarf_Attribute *)&p->base_attr;
	const char *why = dp_eval_number(&e, p->base, p->nbase, &v);
	if (why)
		dp_eval_fail(m, why);
	else
		dp_eval_push(m, v + offset);
}

static void address(struct dp_eval_machine *m, const Dwarf_Op *op)
{
	Dwarf_Attribute attr;
	Dwarf_Addr addr = op->number;
	if (!m->e->debug || (op->atom != DW_OP_addr &&
	                     (!m->e->attr || dwarf_getlocation_attr(m->e->attr, op, &attr) || dwarf_formaddr(&attr, &addr))))
		dp_eval_fail(m, DP_WHY_UNKNOWN);
	else
		dp_eval_push(m, dp_debug_addr(m->e->debug, addr).v);
}

static void indexed_constant(struct dp_eval_machine *m, const Dwarf_Op *op)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;
	Dwarf_Addr addr;
	if (!m->e->attr || dwarf_getlocation_attr(m->e->attr, op, &attr))
		dp_eval_fail(m, DP_WHY_UNKNOWN);
	else if (!dwarf_formudata(&attr, &value))
		dp_eval_push(m, value);
	else if (!dwarf_formaddr(&attr, &addr))
		dp_eval_push(m, addr);
	else
		dp_eval_fail(m, DP_WHY_UNKNOWN);
}

static void entry_value(struct dp_eval_machine *m, const Dwarf_Op *op)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;
	uint64_t v;
	const char *why = DP_WHY_UNKNOWN;
	bool typed = false;
	if (m->e->nesting < NESTING_MAX && m->e->attr && !dwarf_getlocation_attr(m->e->attr, op, &attr) &&
	    !dwarf_getlocation(&attr, &ops, &n) && n == 1) {
		typed = ops[0].atom == DW_OP_regval_type || ops[0].atom == DW_OP_GNU_regval_type;
		if (typed && ops[0].number < 33)
			why = dp_eval_entry(m->e, (unsigned)ops[0].number, &v);
		else if (ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31)
			why = dp_eval_entry(m->e, ops[0].atom - (unsigned)DW_OP_reg0, &v);
	}
	if (why)
		dp_eval_fail(m, why);
	else if (typed)
		dp_eval_push_opaque(m, &v, sizeof(v));
	else
		dp_eval_push(m, v);
}

static void typed_constant(struct dp_eval_machine *m, const Dwarf_Op *op)
{
	Dwarf_Attribute attr;
	Dwarf_Block block;
	if (!m->e->attr || dwarf_getlocation_attr(m->e->attr, op, &attr) || dwarf_formblock(&attr, &block))
		dp_eval_fail(m, DP_WHY_UNKNOWN);
	else
		dp_eval_push_opaque(m, block.data, block.length);
}

static void typed_load(struct dp_eval_machine *m, const Dwarf_Op *op)
{
	dp_eval_load(m, op->number);
	if (!m->why)
		m->stack[m->n - 1].is_opaque = true;
}

static void thread_local_address(struct dp_eval_machine *m)
{
	uint64_t v;
	const struct dp_eval_item offset = dp_eval_pop(m);
	const char *why = m->why ? m->why : dp_eval_tls(m->e, offset.v, &v);
	if (why)
		dp_eval_fail(m, why);
	else
		dp_eval_push(m, v);
}

/* ---- one operation ----------------------------------------------------------------------------------------------------------
 */

static void named_register(struct dp_eval_machine *m, uint64_t number)
{
	m->result = number >= 17 && number < 33 ? DP_EVAL_VECTOR : DP_EVAL_REGISTER;
	m->reg = (unsigned)number;
}

static bool simple(struct dp_eval_machine *m, const Dwarf_Op *op)
{
	const unsigned atom = op->atom;
	if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31)
		dp_eval_push(m, atom - (unsigned)DW_OP_lit0);
	else if (atom >= DW_OP_const1u && atom <= DW_OP_consts)
		dp_eval_push(m, op->number);
	else if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31)
		push_reg(m, atom - (unsigned)DW_OP_breg0, op->number);
	else if (atom >= DW_OP_reg0 && atom <= DW_OP_reg31)
		named_register(m, atom - (unsigned)DW_OP_reg0);
	else
		return false;
	return true;
}

/* What works on values of base types. */
static void step_typed(struct dp_eval_machine *m, const Dwarf_Op *op)
{
	switch (op->atom) {
	case DW_OP_convert:
	case DW_OP_GNU_convert:
	case DW_OP_reinterpret:
	case DW_OP_GNU_reinterpret:
		dp_eval_convert(m, op);
		break;
	case DW_OP_const_type:
	case DW_OP_GNU_const_type:
		typed_constant(m, op);
		break;
	case DW_OP_deref_type:
	case DW_OP_GNU_deref_type:
		typed_load(m, op);
		break;
	case DW_OP_regval_type:
	case DW_OP_GNU_regval_type:
		dp_eval_typed_register(m, op);
		break;
	default:
		dp_eval_fail(m, DP_WHY_UNKNOWN);
	}
}

static void step(struct dp_eval_machine *m, const Dwarf_Op *op)
{
	switch (op->atom) {
	case DW_OP_nop:
		break;
	case DW_OP_regx:
		named_register(m, op->number);
		break;
	case DW_OP_bregx:
		push_reg(m, op->number, op->number2);
		break;
	case DW_OP_fbreg:
		frame_base(m, op->number);
		break;
	case DW_OP_call_frame_cfa:
		if (m->e->frame && m->e->frame->cfa)
			dp_eval_push(m, m->e->frame->cfa);
		else
			dp_eval_fail(m, DP_WHY_OPTIMIZED);
		break;
	case DW_OP_addr:
	case DW_OP_addrx:
	case DW_OP_GNU_addr_index:
		address(m, op);
		break;
	case DW_OP_constx:
	case DW_OP_GNU_const_index:
		indexed_constant(m, op);
		break;
	case DW_OP_form_tls_address:
	case DW_OP_GNU_push_tls_address:
		thread_local_address(m);
		break;
	case DW_OP_entry_value:
	case DW_OP_GNU_entry_value:
		entry_value(m, op);
		break;
	case DW_OP_stack_value:
		m->result = DP_EVAL_VALUE;
		break;
	case DW_OP_implicit_value:
		m->result = DP_EVAL_BLOCK;
		if (!m->e->attr || dwarf_getlocation_implicit_value(m->e->attr, op, &m->block))
			dp_eval_fail(m, DP_WHY_UNKNOWN);
		break;
	case DW_OP_implicit_pointer:
	case DW_OP_GNU_implicit_pointer:
		dp_eval_fail(m, "optimized out: it points at a value that has no address");
		break;
	default:
		step_typed(m, op);
	}
}

/* Jumps are counted, so that no expression runs forever. */
static const Dwarf_Op *jump(const Dwarf_Op *ops, size_t n, const Dwarf_Op *from)
{
	const Dwarf_Word target = from->offset + 3 + (Dwarf_Word)(int64_t)(int16_t)from->number;
	for (size_t i = 0; i < n; i++)
		if (ops[i].offset == target)
			return &ops[i];
	return ops + n;
}

static size_t run(struct dp_eval_machine *m, const Dwarf_Op *ops, size_t n, size_t at)
{
	for (unsigned steps = 0; at < n && !m->why; steps++) {
		const Dwarf_Op *op = &ops[at];
		if (op->atom == DW_OP_piece || op->atom == DW_OP_bit_piece)
			return at;
		if (steps > STEPS_MAX)
			dp_eval_fail(m, DP_WHY_UNKNOWN);
		if (op->atom == DW_OP_skip || op->atom == DW_OP_bra) {
			at = op->atom == DW_OP_skip || dp_eval_pop(m).v ? (size_t)(jump(ops, n, op) - ops) : at + 1;
			continue;
		}
		if (!simple(m, op) && !dp_eval_operate(m, op))
			step(m, op);
		at++;
	}
	while (at < n && ops[at].atom != DW_OP_piece && ops[at].atom != DW_OP_bit_piece)
		at++;
	return at;
}

static void start(struct dp_eval_machine *m, const struct dp_eval *e)
{
	*m = (struct dp_eval_machine){.e = e};
	if (e->has_initial)
		dp_eval_push(m, e->initial);
}

const char *dp_eval_number(const struct dp_eval *e, const Dwarf_Op *ops, size_t n, uint64_t *ret)
{
	struct dp_eval_machine m;
	start(&m, e);
	if (run(&m, ops, n, 0) < n)
		return DP_WHY_UNKNOWN;
	if (!m.why && m.result == DP_EVAL_REGISTER)
		dp_eval_reg(&m, m.reg, ret);
	else if (!m.why && m.n && m.result != DP_EVAL_BLOCK && m.result != DP_EVAL_VECTOR)
		*ret = dp_eval_pop(&m).v;
	else
		dp_eval_fail(&m, DP_WHY_UNKNOWN);
	return m.why;
}

/* ---- where an object is -----------------------------------------------------------------------------------------------------
 */

/* What the machine ended with, as bytes: at most n of them. The number, 0 and `why` if there are none. */
static size_t bytes_of(struct dp_eval_machine *m, uint8_t *to, size_t n)
{
	uint64_t v = 0;
	const struct dp_fstate *f = m->e->frame;
	if (m->why)
		return 0;
	if (m->result == DP_EVAL_VECTOR) {
		if (!f || !f->xmm || m->reg - 17 >= 16) {
			dp_eval_fail(m, DP_WHY_OPTIMIZED);
			return 0;
		}
		n = n < 16 ? n : 16;
		memcpy(to, f->xmm[m->reg - 17], n);
		return n;
	}
	if (m->result == DP_EVAL_BLOCK) {
		n = n < m->block.length ? n : m->block.length;
		memcpy(to, m->block.data, n);
		return n;
	}
	if (m->result == DP_EVAL_REGISTER ? !dp_eval_reg(m, m->reg, &v) : !m->n) {
		dp_eval_fail(m, DP_WHY_OPTIMIZED);
		return 0;
	}
	if (m->result == DP_EVAL_VALUE)
		v = dp_eval_pop(m).v;
	n = n < 8 ? n : 8;
	memcpy(to, &v, n);
	return n;
}

static void nowhere(struct dp_value *into, const char *why)
{
	into->where = DP_VALUE_NOWHERE;
	into->why = why;
}

static void whole(struct dp_eval_machine *m, struct dp_value *into)
{
	const uint64_t want = into->type->size && into->type->size <= 64 ? into->type->size : 8;
	uint8_t *bytes;
	if (!m->why && m->result == DP_EVAL_ADDRESS && m->n) {
		into->where = DP_VALUE_MEMORY;
		into->addr = dp_eval_pop(m).v;
		return;
	}
	bytes = m->why ? NULL : dp_arena_alloc(&m->e->w->arena, want);
	const size_t n = bytes ? bytes_of(m, bytes, want) : 0;
	if (!n || n < into->type->size) {
		nowhere(into, m->why ? m->why : n ? DP_WHY_UNKNOWN : DP_WHY_OPTIMIZED);
		return;
	}
	into->where = DP_VALUE_BYTES;
	into->bytes = bytes;
	into->valid = NULL;
	into->nbytes = n;
}

static bool piece(struct dp_eval_machine *m, uint8_t *to, uint8_t *valid, size_t n, bool *late)
{
	size_t got;
	if (!m->why && m->result == DP_EVAL_ADDRESS && m->n)
		got = dp_world_read(m->e->w, dp_eval_pop(m).v, to, n, late);
	else
		got = bytes_of(m, to, n);
	memset(valid, 1, got);
	return got > 0;
}

static void pieces(struct dp_eval_machine *m, const Dwarf_Op *ops, size_t n, size_t at, struct dp_value *into)
{
	const uint64_t size = into->type->size;
	uint8_t *bytes = size && size <= PIECES_MAX ? dp_arena_alloc(&m->e->w->arena, 2 * size) : NULL;
	bool any = false;
	if (!bytes) {
		nowhere(into, DP_WHY_UNKNOWN);
		return;
	}
	/* A jump may lead back in front of a piece. */
	unsigned steps = 0;
	for (uint64_t done = 0; at < n && done < size && steps++ < PIECES_MAX;) {
		uint64_t here = ops[at].number;
		if (ops[at].atom == DW_OP_bit_piece) {
			if (here % 8 || ops[at].number2)
				break;
			here /= 8;
		}
		here = here < size - done ? here : size - done;
		any |= piece(m, bytes + done, bytes + size + done, here, &into->late);
		done += here;
		start(m, m->e);
		at = run(m, ops, n, at + 1);
	}
	if (!any) {
		nowhere(into, DP_WHY_OPTIMIZED);
		return;
	}
	into->where = DP_VALUE_BYTES;
	into->bytes = bytes;
	into->valid = bytes + size;
	into->nbytes = size;
}

void dp_eval_place(const struct dp_eval *e, const Dwarf_Op *ops, size_t n, struct dp_value *into)
{
	struct dp_eval_machine m;
	start(&m, e);
	const size_t at = run(&m, ops, n, 0);
	if (at < n)
		pieces(&m, ops, n, at, into);
	else
		whole(&m, into);
}
