/* SPDX-License-Identifier: MIT */
/*
 * DWARF's location expressions, run by hand over values that are not known yet: what comes out is the computation that a stub
 * makes at the site. Sources: DWARF 5, sections 2.5, 2.6 and 7.7; the System V psABI for the numbers of registers. Whatever is
 * not understood, or not certain here, is a value that is not there: never a wrong one.
 */
#include "probes/scope_internal.h"

#include <dwarf.h>
#include <string.h>

enum { STACK = 64, STEPS_MAX = 512, NESTING_MAX = 4, WORD = 8 };

struct entry {
	struct dp_expr *expr;
	uint8_t size; /* of its base type; 0: the generic type */
	bool is_signed;
};

enum result { RESULT_ADDRESS, RESULT_VALUE, RESULT_REGISTER };

struct machine {
	struct dp_scope *s;
	struct dp_arena *a;
	Dwarf_Attribute *attr;
	struct entry stack[STACK];
	size_t n;
	enum result result;
	unsigned reg; /* RESULT_REGISTER: DWARF's number */
	const char *absent;
	struct dp_storage pieces;
	unsigned nesting;
};

static void run(struct machine *m, Dwarf_Op *ops, size_t n);

static void fail(struct machine *m, const char *why)
{
	if (!m->absent)
		m->absent = why;
}

static void push_typed(struct machine *m, struct dp_expr *e, uint8_t size, bool is_signed)
{
	if (m->n >= STACK || !e) {
		fail(m, DP_ABSENT_UNKNOWN);
		return;
	}
	m->stack[m->n++] = (struct entry){e, size, is_signed};
}

static void push(struct machine *m, struct dp_expr *e)
{
	push_typed(m, e, 0, false);
}

static struct entry pop(struct machine *m)
{
	if (m->n)
		return m->stack[--m->n];
	fail(m, DP_ABSENT_UNKNOWN);
	return (struct entry){.expr = NULL};
}

/* ---- base types ------------------------------------------------------------------------------------------------------ */

/* Integers only: what is computed with floats in registers is rare, and said not to be there. */
static bool base_type(Dwarf_Die *die, uint8_t *size, bool *is_signed)
{
	uint64_t encoding = 0, bytes = 0;
	if (dwarf_tag(die) != DW_TAG_base_type || !dp_die_unsigned(die, DW_AT_encoding, &encoding) ||
	    !dp_die_unsigned(die, DW_AT_byte_size, &bytes))
		return false;
	*is_signed = encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
	*size = (uint8_t)bytes;
	const bool integer = *is_signed || encoding == DW_ATE_unsigned || encoding == DW_ATE_unsigned_char ||
	                     encoding == DW_ATE_boolean || encoding == DW_ATE_address;
	return integer && (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8);
}

static bool operand_type(struct machine *m, Dwarf_Op *op, uint8_t *size, bool *is_signed)
{
	Dwarf_Die die;
	if (m->attr && !dwarf_getlocation_die(m->attr, op, &die) && base_type(&die, size, is_signed))
		return true;
	fail(m, DP_ABSENT_UNKNOWN);
	return false;
}

static void convert(struct machine *m, Dwarf_Op *op)
{
	struct entry e = pop(m);
	uint8_t size = 0;
	bool is_signed = false;
	if (op->number && !operand_type(m, op, &size, &is_signed))
		return;
	push_typed(m, size ? dp_build_cast(m->a, e.expr, size, is_signed) : e.expr, size, is_signed);
}

static void typed_register(struct machine *m, Dwarf_Op *op)
{
	uint8_t size;
	bool is_signed;
	if (operand_type(m, op, &size, &is_signed))
		push_typed(m, dp_build_cast(m->a, dp_location_register(m->s, op->number, WORD), size, is_signed), size,
		           is_signed);
}

/* ---- operators -------------------------------------------------------------------------------------------------------- */

static void deref(struct machine *m, unsigned size)
{
	if (size != 1 && size != 2 && size != 4 && size != 8)
		fail(m, DP_ABSENT_UNKNOWN);
	else
		push(m, dp_build_load(m->a, pop(m).expr, (uint8_t)size, false));
}

static bool binary_operator(unsigned atom, bool is_signed, enum dp_expr_op *ret)
{
	static const struct {
		uint8_t atom;
		enum dp_expr_op generic, typed_unsigned;
	} table[] = {
	        {DW_OP_and, DP_OP_AND, DP_OP_AND},  {DW_OP_or, DP_OP_OR, DP_OP_OR},      {DW_OP_xor, DP_OP_XOR, DP_OP_XOR},
	        {DW_OP_plus, DP_OP_ADD, DP_OP_ADD}, {DW_OP_minus, DP_OP_SUB, DP_OP_SUB}, {DW_OP_mul, DP_OP_MUL, DP_OP_MUL},
	        {DW_OP_div, DP_OP_DIV, DP_OP_UDIV}, {DW_OP_shl, DP_OP_SHL, DP_OP_SHL},   {DW_OP_shr, DP_OP_LSHR, DP_OP_LSHR},
	        {DW_OP_shra, DP_OP_SHR, DP_OP_SHR}, {DW_OP_eq, DP_OP_EQ, DP_OP_EQ},      {DW_OP_ne, DP_OP_NE, DP_OP_NE},
	        {DW_OP_lt, DP_OP_LT, DP_OP_ULT},    {DW_OP_le, DP_OP_LE, DP_OP_ULE},     {DW_OP_gt, DP_OP_GT, DP_OP_UGT},
	        {DW_OP_ge, DP_OP_GE, DP_OP_UGE},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (table[i].atom == atom) {
			*ret = is_signed ? table[i].generic : table[i].typed_unsigned;
			return true;
		}
	*ret = is_signed ? DP_OP_MOD : DP_OP_UMOD;
	return atom == DW_OP_mod;
}

/* The generic type is signed but for mod and shr (DWARF 5, 2.5.1.4). */
static void binary(struct machine *m, unsigned atom)
{
	enum dp_expr_op op;
	const struct entry b = pop(m), a = pop(m);
	const bool is_signed = a.size ? a.is_signed : atom != DW_OP_mod;
	const bool shift = atom == DW_OP_shl || atom == DW_OP_shr || atom == DW_OP_shra;
	uint64_t count;
	if (!binary_operator(atom, is_signed, &op) || (shift && !(dp_build_is_const(b.expr, &count) && count < 64))) {
		fail(m, DP_ABSENT_UNKNOWN);
		return;
	}
	struct dp_expr *left = a.size && atom == DW_OP_shr ? dp_build_cast(m->a, a.expr, a.size, false) : a.expr;
	struct dp_expr *e = dp_build_binary(m->a, op, left, b.expr);
	const bool compares = atom >= DW_OP_eq && atom <= DW_OP_ne;
	if (compares)
		push(m, e);
	else
		push_typed(m, a.size ? dp_build_cast(m->a, e, a.size, a.is_signed) : e, a.size, a.is_signed);
}

static void unary(struct machine *m, unsigned atom)
{
	const struct entry e = pop(m);
	struct dp_expr *x = dp_build_unary(m->a, atom == DW_OP_not ? DP_OP_COMPL : DP_OP_NEG, e.expr);
	if (atom == DW_OP_abs) {
		struct dp_expr *negative = dp_build_binary(m->a, DP_OP_LT, e.expr, dp_build_const(m->a, 0));
		x = x && negative ? dp_build(m->a, (struct dp_expr){.kind = DP_EXPR_COND, .c = negative, .a = x, .b = e.expr})
		                  : NULL;
	}
	push_typed(m, e.size ? dp_build_cast(m->a, x, e.size, e.is_signed) : x, e.size, e.is_signed);
}

static void shuffle(struct machine *m, const Dwarf_Op *op)
{
	const size_t need = op->atom == DW_OP_over || op->atom == DW_OP_swap ? 2 : op->atom == DW_OP_rot ? 3 : 1;
	const size_t index = op->atom == DW_OP_over ? 1 : op->atom == DW_OP_pick ? (size_t)op->number : 0;
	if (m->n < need || m->n <= index) {
		fail(m, DP_ABSENT_UNKNOWN);
		return;
	}
	struct entry *top = &m->stack[m->n - 1], e = *top;
	switch (op->atom) {
	case DW_OP_drop:
		m->n--;
		break;
	case DW_OP_swap:
		*top = top[-1];
		top[-1] = e;
		break;
	case DW_OP_rot:
		*top = top[-1];
		top[-1] = top[-2];
		top[-2] = e;
		break;
	default:
		e = m->stack[m->n - 1 - index];
		push_typed(m, e.expr, e.size, e.is_signed);
	}
}

/* ---- operations that ask the program ------------------------------------------------------------------------------------ */

static void address(struct machine *m, Dwarf_Op *op)
{
	Dwarf_Attribute attr;
	Dwarf_Addr addr = op->number;
	if (op->atom != DW_OP_addr && (!m->attr || dwarf_getlocation_attr(m->attr, op, &attr) || dwarf_formaddr(&attr, &addr))) {
		fail(m, DP_ABSENT_UNKNOWN);
		return;
	}
	push(m, dp_build_const(m->a, dp_debug_addr(m->s->debug, addr).v));
}

static void indexed_constant(struct machine *m, Dwarf_Op *op)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;
	Dwarf_Addr addr;
	if (!m->attr || dwarf_getlocation_attr(m->attr, op, &attr))
		fail(m, DP_ABSENT_UNKNOWN);
	else if (!dwarf_formudata(&attr, &value))
		push(m, dp_build_const(m->a, value));
	else if (!dwarf_formaddr(&attr, &addr))
		push(m, dp_build_const(m->a, addr));
	else
		fail(m, DP_ABSENT_UNKNOWN);
}

static void thread_local_address(struct machine *m)
{
	const char *absent = DP_ABSENT_UNKNOWN;
	struct dp_expr *addr = dp_location_thread_local(m->s, pop(m).expr, &absent);
	if (addr)
		push(m, addr);
	else
		fail(m, absent);
}

/* What a register held when the function was entered is known there only. */
static void entry_value(struct machine *m, Dwarf_Op *op)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;
	if (!m->s->at_entry)
		fail(m, DP_ABSENT_OPTIMIZED);
	else if (m->nesting >= NESTING_MAX || !m->attr || dwarf_getlocation_attr(m->attr, op, &attr) ||
	         dwarf_getlocation(&attr, &ops, &n) || n != 1 || ops[0].atom < DW_OP_reg0 || ops[0].atom > DW_OP_reg31)
		fail(m, DP_ABSENT_UNKNOWN);
	else
		push(m, dp_location_register(m->s, ops[0].atom - (unsigned)DW_OP_reg0, WORD));
}

static void frame_base(struct machine *m, Dwarf_Op *op)
{
	const char *absent = NULL;
	struct dp_expr *base = m->nesting ? NULL : dp_frame_base(m->s, &absent);
	if (base)
		push(m, dp_build_add(m->a, base, op->number));
	else
		fail(m, absent ? absent : DP_ABSENT_UNKNOWN);
}

/* ---- how it ends -------------------------------------------------------------------------------------------------------- */

static struct dp_piece conclude(struct machine *m, uint64_t size)
{
	struct dp_piece p = {.kind = DP_PIECE_NONE, .size = size, .absent = m->absent};
	if (m->absent)
		return p;
	if (m->result == RESULT_REGISTER) {
		p.kind = DP_PIECE_VALUE;
		p.expr = dp_location_register(m->s, m->reg, WORD);
	} else if (m->n) {
		p.expr = pop(m).expr;
		p.kind = m->result == RESULT_VALUE ? DP_PIECE_VALUE : DP_PIECE_MEMORY;
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

static void piece(struct machine *m, uint64_t size)
{
	dp_storage_add(m->a, &m->pieces, conclude(m, size));
	m->absent = NULL;
	m->n = 0;
	m->result = RESULT_ADDRESS;
}

/* The bytes of a value that stands in the debug information itself, eight at a time. */
static void implicit_bytes(struct machine *m, const uint8_t *bytes, uint64_t n)
{
	if (n <= WORD) {
		uint64_t v = 0;
		memcpy(&v, bytes, n);
		push(m, dp_build_const(m->a, v));
		m->result = RESULT_VALUE;
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

static void implicit_value(struct machine *m, Dwarf_Op *op)
{
	Dwarf_Block block;
	if (!m->attr || dwarf_getlocation_implicit_value(m->attr, op, &block))
		fail(m, DP_ABSENT_UNKNOWN);
	else
		implicit_bytes(m, block.data, block.length);
}

/* ---- the loop ------------------------------------------------------------------------------------------------------------- */

static bool is_simple(struct machine *m, const Dwarf_Op *op)
{
	const unsigned atom = op->atom;
	if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31)
		push(m, dp_build_const(m->a, atom - (unsigned)DW_OP_lit0));
	else if (atom >= DW_OP_const1u && atom <= DW_OP_consts)
		push(m, dp_build_const(m->a, op->number));
	else if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31)
		push(m, dp_build_add(m->a, dp_location_register(m->s, atom - (unsigned)DW_OP_breg0, WORD), op->number));
	else if (atom >= DW_OP_reg0 && atom <= DW_OP_reg31) {
		m->result = RESULT_REGISTER;
		m->reg = atom - (unsigned)DW_OP_reg0;
	} else
		return false;
	return true;
}

static bool is_stack_work(struct machine *m, Dwarf_Op *op)
{
	switch (op->atom) {
	case DW_OP_dup:
	case DW_OP_drop:
	case DW_OP_over:
	case DW_OP_pick:
	case DW_OP_swap:
	case DW_OP_rot:
		shuffle(m, op);
		return true;
	case DW_OP_abs:
	case DW_OP_neg:
	case DW_OP_not:
		unary(m, op->atom);
		return true;
	case DW_OP_plus_uconst:
		push(m, dp_build_add(m->a, pop(m).expr, op->number));
		return true;
	case DW_OP_deref:
		deref(m, WORD);
		return true;
	case DW_OP_deref_size:
		deref(m, (unsigned)op->number);
		return true;
	case DW_OP_nop:
		return true;
	case DW_OP_and:
	case DW_OP_div:
	case DW_OP_minus:
	case DW_OP_mod:
	case DW_OP_mul:
	case DW_OP_or:
	case DW_OP_plus:
	case DW_OP_shl:
	case DW_OP_shr:
	case DW_OP_shra:
	case DW_OP_xor:
	case DW_OP_eq:
	case DW_OP_ge:
	case DW_OP_gt:
	case DW_OP_le:
	case DW_OP_lt:
	case DW_OP_ne:
		binary(m, op->atom);
		return true;
	default:
		return false;
	}
}

static void step(struct machine *m, Dwarf_Op *op)
{
	switch (op->atom) {
	case DW_OP_regx:
		m->result = RESULT_REGISTER;
		m->reg = (unsigned)op->number;
		break;
	case DW_OP_bregx:
		push(m, dp_build_add(m->a, dp_location_register(m->s, op->number, WORD), op->number2));
		break;
	case DW_OP_fbreg:
		frame_base(m, op);
		break;
	case DW_OP_call_frame_cfa: {
		struct dp_expr *cfa = dp_frame_cfa(m->s);
		push(m, cfa);
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
		m->result = RESULT_VALUE;
		break;
	case DW_OP_implicit_value:
		implicit_value(m, op);
		break;
	case DW_OP_implicit_pointer:
	case DW_OP_GNU_implicit_pointer:
		fail(m, DP_ABSENT_OPTIMIZED);
		break;
	case DW_OP_convert:
	case DW_OP_GNU_convert:
	case DW_OP_reinterpret:
	case DW_OP_GNU_reinterpret:
		convert(m, op);
		break;
	case DW_OP_regval_type:
	case DW_OP_GNU_regval_type:
		typed_register(m, op);
		break;
	default:
		fail(m, DP_ABSENT_UNKNOWN);
	}
}

static void run(struct machine *m, Dwarf_Op *ops, size_t n)
{
	if (n > STEPS_MAX)
		fail(m, DP_ABSENT_UNKNOWN);
	for (size_t i = 0; i < n && i < STEPS_MAX; i++) {
		if (ops[i].atom == DW_OP_piece) {
			piece(m, ops[i].number);
			continue;
		}
		if (ops[i].atom == DW_OP_bit_piece && ops[i].number % 8 == 0 && !ops[i].number2) {
			piece(m, ops[i].number / 8);
			continue;
		}
		if (!m->absent && !is_simple(m, &ops[i]) && !is_stack_work(m, &ops[i]))
			step(m, &ops[i]);
	}
}

struct dp_storage dp_location_of(struct dp_scope *s, Dwarf_Attribute *attr)
{
	Dwarf_Op *ops;
	size_t n;
	if (dwarf_getlocation_addr(attr, s->pc, &ops, &n, 1) != 1 || !n)
		return dp_storage_none(&s->arena, DP_ABSENT_OPTIMIZED);
	struct machine m = {.s = s, .a = &s->arena, .attr = attr};
	run(&m, ops, n);
	if (!m.pieces.n)
		piece(&m, UINT64_MAX);
	return m.pieces;
}

struct dp_expr *dp_location_value(struct dp_scope *s, Dwarf_Attribute *attr, Dwarf_Op *ops, size_t n, const char **absent)
{
	struct machine m = {.s = s, .a = &s->arena, .attr = attr, .nesting = 1};
	run(&m, ops, n);
	if (!m.absent && m.result == RESULT_REGISTER)
		return dp_location_register(s, m.reg, WORD);
	if (!m.absent && m.n)
		return pop(&m).expr;
	*absent = m.absent ? m.absent : DP_ABSENT_UNKNOWN;
	return NULL;
}
