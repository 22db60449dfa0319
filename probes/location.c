/* SPDX-License-Identifier: MIT */
/*
 * DWARF's location expressions, run by hand over values that are not known yet: what comes out is the computation that a stub
 * makes at the site. Sources: DWARF 5, sections 2.5, 2.6 and 7.7; the System V psABI for the numbers of registers. Whatever is
 * not understood, or not certain here, is a value that is not there: never a wrong one.
 */
#include "probes/location_machine.h"

#include <dwarf.h>
#include <string.h>

enum { STEPS_MAX = 512, NESTING_MAX = 4, WORD = DP_MACHINE_WORD };

/* ---- operations that ask the program ------------------------------------------------------------------------------------ */

static void address(struct dp_machine *m, Dwarf_Op *op)
{
	Dwarf_Attribute attr;
	Dwarf_Addr addr = op->number;
	if (op->atom != DW_OP_addr && (!m->attr || dwarf_getlocation_attr(m->attr, op, &attr) || dwarf_formaddr(&attr, &addr))) {
		dp_machine_fail(m, DP_ABSENT_UNKNOWN);
		return;
	}
	dp_machine_push(m, dp_build_const(m->a, dp_debug_addr(m->s->debug, addr).v));
}

static void indexed_constant(struct dp_machine *m, Dwarf_Op *op)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;
	Dwarf_Addr addr;
	if (!m->attr || dwarf_getlocation_attr(m->attr, op, &attr))
		dp_machine_fail(m, DP_ABSENT_UNKNOWN);
	else if (!dwarf_formudata(&attr, &value))
		dp_machine_push(m, dp_build_const(m->a, value));
	else if (!dwarf_formaddr(&attr, &addr))
		dp_machine_push(m, dp_build_const(m->a, addr));
	else
		dp_machine_fail(m, DP_ABSENT_UNKNOWN);
}

static void thread_local_address(struct dp_machine *m)
{
	const char *absent = DP_ABSENT_UNKNOWN;
	struct dp_expr *addr = dp_location_thread_local(m->s, dp_machine_pop(m).expr, &absent);
	if (addr)
		dp_machine_push(m, addr);
	else
		dp_machine_fail(m, absent);
}

/* What a register held when the function was entered is known there only. */
static void entry_value(struct dp_machine *m, Dwarf_Op *op)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;
	if (!m->s->at_entry)
		dp_machine_fail(m, DP_ABSENT_OPTIMIZED);
	else if (m->nesting >= NESTING_MAX || !m->attr || dwarf_getlocation_attr(m->attr, op, &attr) ||
	         dwarf_getlocation(&attr, &ops, &n) || n != 1 || ops[0].atom < DW_OP_reg0 || ops[0].atom > DW_OP_reg31)
		dp_machine_fail(m, DP_ABSENT_UNKNOWN);
	else
		dp_machine_push(m, dp_location_register(m->s, ops[0].atom - (unsigned)DW_OP_reg0, WORD));
}

static void frame_base(struct dp_machine *m, Dwarf_Op *op)
{
	const char *absent = NULL;
	struct dp_expr *base = m->nesting ? NULL : dp_frame_base(m->s, &absent);
	if (base)
		dp_machine_push(m, dp_build_add(m->a, base, op->number));
	else
		dp_machine_fail(m, absent ? absent : DP_ABSENT_UNKNOWN);
}

/* ---- how it ends -------------------------------------------------------------------------------------------------------- */

static struct dp_piece conclude(struct dp_machine *m, uint64_t size)
{
	struct dp_piece p = {.kind = DP_PIECE_NONE, .size = size, .absent = m->absent, .is_implicit = m->is_implicit};
	p.target = m->target;
	p.inside = m->inside;
	if (m->absent)
		return p;
	if (m->result == DP_MACHINE_REGISTER) {
		p.kind = DP_PIECE_VALUE;
		p.expr = dp_location_register(m->s, m->reg, WORD);
	} else if (m->n) {
		p.expr = dp_machine_pop(m).expr;
		p.kind = m->result == DP_MACHINE_VALUE ? DP_PIECE_VALUE : DP_PIECE_MEMORY;
		if (p.kind == DP_PIECE_MEMORY && p.expr && dp_location_is_dead(p.expr)) {
			p.kind = DP_PIECE_NONE;
			p.absent = DP_ABSENT_GONE;
		}
	} else {
		p.absent = DP_ABSENT_OPTIMIZED;
	}
	if (p.kind != DP_PIECE_NONE && !p.expr) {
		p.kind = DP_PIECE_NONE;
		p.absent = DP_ABSENT_UNKNOWN;
	}
	return p;
}

static void piece(struct dp_machine *m, uint64_t size)
{
	dp_storage_add(m->a, &m->pieces, conclude(m, size));
	m->absent = NULL;
	m->is_implicit = false;
	m->n = 0;
	m->result = DP_MACHINE_ADDRESS;
}

/* The bytes of a value that stands in the debug information itself, eight at a time. */
static void implicit_bytes(struct dp_machine *m, const uint8_t *bytes, uint64_t n)
{
	if (n <= WORD) {
		uint64_t v = 0;
		memcpy(&v, bytes, n);
		dp_machine_push(m, dp_build_const(m->a, v));
		m->result = DP_MACHINE_VALUE;
		return;
	}
	for (uint64_t at = 0; at < n; at += WORD) {
		uint64_t v = 0;
		memcpy(&v, bytes + at, n - at < WORD ? n - at : WORD);
		dp_storage_add(m->a, &m->pieces,
		               (struct dp_piece){.kind = DP_PIECE_VALUE,
		                                 .size = n - at < WORD ? n - at : WORD,
		                                 .expr = dp_build_const(m->a, v)});
	}
}

static void implicit_value(struct dp_machine *m, Dwarf_Op *op)
{
	Dwarf_Block block;
	if (!m->attr || dwarf_getlocation_implicit_value(m->attr, op, &block))
		dp_machine_fail(m, DP_ABSENT_UNKNOWN);
	else
		implicit_bytes(m, block.data, block.length);
}

/* There is no pointer; what it would point to may be known. */
static void implicit_pointer(struct dp_machine *m, Dwarf_Op *op)
{
	m->is_implicit = m->attr && !m->nesting && !dwarf_getlocation_implicit_pointer(m->attr, op, &m->target);
	m->inside = (int64_t)op->number2;
	dp_machine_fail(m, DP_ABSENT_OPTIMIZED);
}

/* ---- the loop ------------------------------------------------------------------------------------------------------------- */

static bool is_simple(struct dp_machine *m, const Dwarf_Op *op)
{
	const unsigned atom = op->atom;
	if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31)
		dp_machine_push(m, dp_build_const(m->a, atom - (unsigned)DW_OP_lit0));
	else if (atom >= DW_OP_const1u && atom <= DW_OP_consts)
		dp_machine_push(m, dp_build_const(m->a, op->number));
	else if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31)
		dp_machine_push(m,
		                dp_build_add(m->a, dp_location_register(m->s, atom - (unsigned)DW_OP_breg0, WORD), op->number));
	else if (atom >= DW_OP_reg0 && atom <= DW_OP_reg31) {
		m->result = DP_MACHINE_REGISTER;
		m->reg = atom - (unsigned)DW_OP_reg0;
	} else
		return false;
	return true;
}

static void step(struct dp_machine *m, Dwarf_Op *op)
{
	switch (op->atom) {
	case DW_OP_regx:
		m->result = DP_MACHINE_REGISTER;
		m->reg = (unsigned)op->number;
		break;
	case DW_OP_bregx:
		dp_machine_push(m, dp_build_add(m->a, dp_location_register(m->s, op->number, WORD), op->number2));
		break;
	case DW_OP_fbreg:
		frame_base(m, op);
		break;
	case DW_OP_call_frame_cfa: {
		struct dp_expr *cfa = dp_frame_cfa(m->s);
		dp_machine_push(m, cfa);
		break;
	}
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
		m->result = DP_MACHINE_VALUE;
		break;
	case DW_OP_implicit_value:
		implicit_value(m, op);
		break;
	case DW_OP_implicit_pointer:
	case DW_OP_GNU_implicit_pointer:
		implicit_pointer(m, op);
		break;
	case DW_OP_convert:
	case DW_OP_GNU_convert:
	case DW_OP_reinterpret:
	case DW_OP_GNU_reinterpret:
		dp_machine_convert(m, op);
		break;
	case DW_OP_regval_type:
	case DW_OP_GNU_regval_type:
		dp_machine_typed_register(m, op);
		break;
	default:
		dp_machine_fail(m, DP_ABSENT_UNKNOWN);
	}
}

static void run(struct dp_machine *m, Dwarf_Op *ops, size_t n)
{
	if (n > STEPS_MAX)
		dp_machine_fail(m, DP_ABSENT_UNKNOWN);
	for (size_t i = 0; i < n && i < STEPS_MAX; i++) {
		if (ops[i].atom == DW_OP_piece) {
			piece(m, ops[i].number);
			continue;
		}
		if (ops[i].atom == DW_OP_bit_piece && ops[i].number % 8 == 0 && !ops[i].number2) {
			piece(m, ops[i].number / 8);
			continue;
		}
		if (!m->absent && !is_simple(m, &ops[i]) && !dp_machine_operator(m, &ops[i]))
			step(m, &ops[i]);
	}
}

struct dp_storage dp_location_of(struct dp_scope *s, Dwarf_Attribute *attr)
{
	Dwarf_Op *ops;
	size_t n;
	if (dwarf_getlocation_addr(attr, s->pc, &ops, &n, 1) != 1 || !n)
		return dp_storage_none(&s->arena, DP_ABSENT_OPTIMIZED);
	struct dp_machine m = {.s = s, .a = &s->arena, .attr = attr};
	run(&m, ops, n);
	if (!m.pieces.n)
		piece(&m, UINT64_MAX);
	return m.pieces;
}

bool dp_location_behind(struct dp_scope *s, const struct dp_storage *pointer, struct dp_storage *ret)
{
	if (pointer->n != 1 || pointer->offset || !pointer->piece->is_implicit || pointer->piece->inside < 0)
		return false;
	Dwarf_Attribute attr = pointer->piece->target;
	*ret = dwarf_whatattr(&attr) == DW_AT_const_value ? dp_variable_constant(s, &attr) : dp_location_of(s, &attr);
	ret->offset += (uint64_t)pointer->piece->inside;
	return true;
}

struct dp_expr *dp_location_value(struct dp_scope *s, Dwarf_Attribute *attr, Dwarf_Op *ops, size_t n, const char **absent)
{
	struct dp_machine m = {.s = s, .a = &s->arena, .attr = attr, .nesting = 1};
	run(&m, ops, n);
	if (!m.absent && m.result == DP_MACHINE_REGISTER)
		return dp_location_register(s, m.reg, WORD);
	if (!m.absent && m.n)
		return dp_machine_pop(&m).expr;
	*absent = m.absent ? m.absent : DP_ABSENT_UNKNOWN;
	return NULL;
}

/* The expression begins with the object's address, and goes by its table of virtual functions. */
struct dp_storage dp_location_base(struct dp_scope *s, const struct dp_storage *object, const struct dp_member *m)
{
	Dwarf_Die die = m->base;
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;
	const char *absent = "in a virtual base";
	struct dp_storage from = *object;
	from.offset += m->before;
	if (!die.addr || !dwarf_attr_integrate(&die, DW_AT_data_member_location, &attr) || dwarf_getlocation(&attr, &ops, &n) ||
	    !n)
		return dp_storage_none(&s->arena, absent);
	struct dp_expr *addr = dp_storage_address(&s->arena, &from, &absent);
	if (!addr)
		return dp_storage_none(&s->arena, absent);
	struct dp_machine machine = {.s = s, .a = &s->arena, .attr = &attr, .nesting = 1};
	dp_machine_push(&machine, addr);
	run(&machine, ops, n);
	if (machine.absent || machine.result != DP_MACHINE_ADDRESS || machine.n != 1)
		return dp_storage_none(&s->arena, machine.absent ? machine.absent : DP_ABSENT_UNKNOWN);
	return dp_storage_memory(&s->arena, dp_machine_pop(&machine).expr);
}
