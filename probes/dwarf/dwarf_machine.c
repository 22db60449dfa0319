/* SPDX-License-Identifier: MIT */
#include "probes/debug/debug.h"
#include "probes/dwarf/dwarf_operation.h"

void dp_dwarf_fail(struct dp_dwarf_machine *m, const char *why)
{
	if (!m->why)
		m->why = why;
}

void dp_dwarf_push_item(struct dp_dwarf_machine *m, const char *why, struct dp_dwarf_item item)
{
	if (why)
		dp_dwarf_fail(m, why);
	else if (m->n >= DP_DWARF_STACK)
		dp_dwarf_fail(m, DP_ABSENT_UNKNOWN);
	else
		m->stack[m->n++] = item;
}

void dp_dwarf_push(struct dp_dwarf_machine *m, const char *why, union dp_dwarf_value v)
{
	dp_dwarf_push_item(m, why, (struct dp_dwarf_item){.value = v});
}

void dp_dwarf_push_typed(struct dp_dwarf_machine *m, const char *why, struct dp_dwarf_item item)
{
	if (!why && item.type.size)
		why = m->back->cast(m, item.value, item.type, &item.value);
	dp_dwarf_push_item(m, why, item);
}

struct dp_dwarf_item dp_dwarf_pop(struct dp_dwarf_machine *m)
{
	if (m->n)
		return m->stack[--m->n];
	dp_dwarf_fail(m, DP_ABSENT_UNKNOWN);
	return (struct dp_dwarf_item){0};
}

static void constant(struct dp_dwarf_machine *m, uint64_t number)
{
	union dp_dwarf_value v = {0};
	const char *why = m->back->constant(m, number, &v);
	dp_dwarf_push(m, why, v);
}

static void literal(struct dp_dwarf_machine *m, const Dwarf_Op *op)
{
	constant(m, op->atom - (unsigned)DW_OP_lit0);
}

static void number(struct dp_dwarf_machine *m, const Dwarf_Op *op)
{
	constant(m, op->number);
}

static const char *add(struct dp_dwarf_machine *m, union dp_dwarf_value *v, uint64_t n)
{
	union dp_dwarf_value operand[2] = {*v};
	const char *why = n ? m->back->constant(m, n, &operand[1]) : NULL;
	return why || !n ? why : m->back->apply(m, DP_OP_ADD, operand, v);
}

static void plus_constant(struct dp_dwarf_machine *m, const Dwarf_Op *op)
{
	struct dp_dwarf_item a = dp_dwarf_pop(m);
	dp_dwarf_push_typed(m, a.type.is_real ? DP_ABSENT_UNKNOWN : add(m, &a.value, op->number), a);
}

static void address(struct dp_dwarf_machine *m, const Dwarf_Op *op)
{
	Dwarf_Attribute attr;
	Dwarf_Addr addr = op->number;
	if (!m->debug ||
	    (op->atom != DW_OP_addr && (!m->attr || dwarf_getlocation_attr(m->attr, op, &attr) || dwarf_formaddr(&attr, &addr))))
		dp_dwarf_fail(m, DP_ABSENT_UNKNOWN);
	else
		constant(m, dp_debug_addr(m->debug, addr).v);
}

static void indexed_constant(struct dp_dwarf_machine *m, const Dwarf_Op *op)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;
	Dwarf_Addr addr;
	if (!m->attr || dwarf_getlocation_attr(m->attr, op, &attr))
		dp_dwarf_fail(m, DP_ABSENT_UNKNOWN);
	else if (!dwarf_formudata(&attr, &value))
		constant(m, value);
	else if (!dwarf_formaddr(&attr, &addr))
		constant(m, addr);
	else
		dp_dwarf_fail(m, DP_ABSENT_UNKNOWN);
}

static void register_place(struct dp_dwarf_machine *m, const Dwarf_Op *op)
{
	m->result = DP_DWARF_REGISTER;
	dp_dwarf_is_register(op, &m->reg);
}

static void register_value(struct dp_dwarf_machine *m, const Dwarf_Op *op)
{
	union dp_dwarf_value v = {0};
	uint64_t reg = 0, offset;
	dp_dwarf_is_based(op, &reg, &offset);
	const char *why = m->back->reg(m, reg, &v);
	why = why ? why : add(m, &v, offset);
	dp_dwarf_push(m, why, v);
}

static void frame_address(struct dp_dwarf_machine *m, const Dwarf_Op *op)
{
	(void)op;
	union dp_dwarf_value v = {0};
	const char *why = m->back->cfa(m, &v);
	dp_dwarf_push(m, why, v);
}

static void frame_base(struct dp_dwarf_machine *m, const Dwarf_Op *op)
{
	union dp_dwarf_value v = {0};
	const char *why = m->back->frame_base ? m->back->frame_base(m, &v) : DP_ABSENT_UNKNOWN;
	why = why ? why : add(m, &v, op->number);
	dp_dwarf_push(m, why, v);
}

static void thread_storage(struct dp_dwarf_machine *m, const Dwarf_Op *op)
{
	(void)op;
	union dp_dwarf_value v = {0};
	const char *why = m->back->tls ? m->back->tls(m, dp_dwarf_pop(m).value, &v) : DP_ABSENT_UNKNOWN;
	dp_dwarf_push(m, why, v);
}

/* Supports a single register, optionally typed: compilers emit nothing else here. */
static void entry_value(struct dp_dwarf_machine *m, const Dwarf_Op *op)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;
	uint64_t reg;
	struct dp_dwarf_item item = {0};
	if (!m->attr || dwarf_getlocation_attr(m->attr, op, &attr) || dwarf_getlocation(&attr, &ops, &n) || n != 1) {
		dp_dwarf_fail(m, DP_ABSENT_UNKNOWN);
		return;
	}
	const bool typed = ops[0].atom == DW_OP_regval_type || ops[0].atom == DW_OP_GNU_regval_type;
	reg = ops[0].number;
	/* libdw's inner attribute belongs to no unit, so use the outer one: type offsets count from its unit's start. */
	if (typed ? dp_dwarf_operand_type(m->attr, ops, &item.type) : dp_dwarf_is_register(ops, &reg)) {
		const char *why = m->back->entry ? m->back->entry(m, reg, &item.value) : DP_ABSENT_UNKNOWN;
		dp_dwarf_push_typed(m, why, item);
	} else {
		dp_dwarf_fail(m, DP_ABSENT_UNKNOWN);
	}
}

static void deref(struct dp_dwarf_machine *m, const Dwarf_Op *op)
{
	union dp_dwarf_value v = {0};
	const uint64_t size = op->atom == DW_OP_deref ? DP_DWARF_WORD : op->number;
	const struct dp_dwarf_item addr = dp_dwarf_pop(m);
	const char *why = !size || size > DP_DWARF_WORD || addr.type.is_real ? DP_ABSENT_UNKNOWN
	                                                                     : m->back->load(m, addr.value, (unsigned)size, &v);
	dp_dwarf_push(m, why, v);
}

static void nothing(struct dp_dwarf_machine *m, const Dwarf_Op *op)
{
	(void)m;
	(void)op;
}

/* Skipped operations count as steps, so that every expression ends. (Operations that libdw puts in front have no offset.) */
static void skip(struct dp_dwarf_machine *m, const Dwarf_Op *op)
{
	const Dwarf_Word target = op->offset + 3 + (Dwarf_Word)(int64_t)(int16_t)op->number;
	size_t i = 0;
	while (i < m->nops && *m->steps && m->ops[i].offset != target) {
		--*m->steps;
		i++;
	}
	if (i == m->nops && target <= m->ops[i - 1].offset)
		dp_dwarf_fail(m, DP_ABSENT_UNKNOWN);
	m->at = i;
}

static void branch(struct dp_dwarf_machine *m, const Dwarf_Op *op)
{
	uint64_t v;
	if (!m->back->is_number(m, dp_dwarf_pop(m).value, &v))
		dp_dwarf_fail(m, DP_ABSENT_UNKNOWN);
	else if (v)
		skip(m, op);
}

static void stack_value(struct dp_dwarf_machine *m, const Dwarf_Op *op)
{
	(void)op;
	m->result = DP_DWARF_VALUE;
}

static void implicit_value(struct dp_dwarf_machine *m, const Dwarf_Op *op)
{
	m->result = DP_DWARF_BLOCK;
	if (!m->attr || dwarf_getlocation_implicit_value(m->attr, op, &m->block))
		dp_dwarf_fail(m, DP_ABSENT_UNKNOWN);
}

/* The pointer itself was optimized out; the object it would point to may be known. */
static void implicit_pointer(struct dp_dwarf_machine *m, const Dwarf_Op *op)
{
	m->is_implicit = m->attr && !dwarf_getlocation_implicit_pointer(m->attr, op, &m->target);
	m->inside = (int64_t)op->number2;
	dp_dwarf_fail(m, DP_ABSENT_POINTER);
}

/* A parameter that is not passed any more: a caller knows what it would have passed (DW_AT_call_value). */
static void callers_value(struct dp_dwarf_machine *m, const Dwarf_Op *op)
{
	(void)op;
	dp_dwarf_fail(m, DP_ABSENT_CALLERS);
}

static void end_piece(struct dp_dwarf_machine *m, uint64_t size)
{
	if (m->back->piece)
		m->back->piece(m, size);
	m->npieces++;
	m->why = NULL;
	m->is_implicit = false;
	m->n = 0;
	m->result = DP_DWARF_ADDRESS;
}

static void piece(struct dp_dwarf_machine *m, const Dwarf_Op *op)
{
	end_piece(m, op->number);
}

/* Supports whole bytes only. After another size the offsets of later pieces are unknown. */
static void bit_piece(struct dp_dwarf_machine *m, const Dwarf_Op *op)
{
	if (op->number % 8 == 0 && !op->number2) {
		end_piece(m, op->number / 8);
		return;
	}
	m->why = DP_ABSENT_UNKNOWN;
	end_piece(m, UINT64_MAX);
	m->at = m->nops;
}

const struct dp_dwarf_operation dp_dwarf_operations[256] = {
        [DW_OP_addr] = {.step = address},
        [DW_OP_addrx] = {.step = address},
        [DW_OP_GNU_addr_index] = {.step = address},
        [DW_OP_constx] = {.step = indexed_constant},
        [DW_OP_GNU_const_index] = {.step = indexed_constant},
        [DW_OP_const1u... DW_OP_consts] = {.step = number},
        [DW_OP_lit0... DW_OP_lit31] = {.step = literal},
        [DW_OP_reg0... DW_OP_reg31] = {.step = register_place},
        [DW_OP_regx] = {.step = register_place},
        [DW_OP_breg0... DW_OP_breg31] = {.step = register_value},
        [DW_OP_bregx] = {.step = register_value},
        [DW_OP_fbreg] = {.step = frame_base},
        [DW_OP_call_frame_cfa] = {.step = frame_address},
        [DW_OP_form_tls_address] = {.step = thread_storage, .takes = 1},
        [DW_OP_GNU_push_tls_address] = {.step = thread_storage, .takes = 1},
        [DW_OP_entry_value] = {.step = entry_value},
        [DW_OP_GNU_entry_value] = {.step = entry_value},
        [DW_OP_GNU_parameter_ref] = {.step = callers_value},
        [DW_OP_deref] = {.step = deref, .takes = 1},
        [DW_OP_deref_size] = {.step = deref, .takes = 1},

        [DW_OP_dup] = {.step = dp_dwarf_shuffle, .takes = 1},
        [DW_OP_drop] = {.step = dp_dwarf_shuffle, .takes = 1},
        [DW_OP_over] = {.step = dp_dwarf_shuffle, .takes = 2},
        [DW_OP_pick] = {.step = dp_dwarf_shuffle, .takes = 1},
        [DW_OP_swap] = {.step = dp_dwarf_shuffle, .takes = 2},
        [DW_OP_rot] = {.step = dp_dwarf_shuffle, .takes = 3},

        [DW_OP_abs] = {.step = dp_dwarf_unary, .takes = 1},
        [DW_OP_neg] = {.step = dp_dwarf_unary, .takes = 1, .of_signed = DP_OP_NEG},
        [DW_OP_not] = {.step = dp_dwarf_unary, .takes = 1, .of_signed = DP_OP_COMPL},
        [DW_OP_plus_uconst] = {.step = plus_constant, .takes = 1},
        [DW_OP_and] = {dp_dwarf_binary, 2, DP_OP_AND, DP_OP_AND, DP_OP_NOT},
        [DW_OP_or] = {dp_dwarf_binary, 2, DP_OP_OR, DP_OP_OR, DP_OP_NOT},
        [DW_OP_xor] = {dp_dwarf_binary, 2, DP_OP_XOR, DP_OP_XOR, DP_OP_NOT},
        [DW_OP_plus] = {dp_dwarf_binary, 2, DP_OP_ADD, DP_OP_ADD, DP_OP_FADD},
        [DW_OP_minus] = {dp_dwarf_binary, 2, DP_OP_SUB, DP_OP_SUB, DP_OP_FSUB},
        [DW_OP_mul] = {dp_dwarf_binary, 2, DP_OP_MUL, DP_OP_MUL, DP_OP_FMUL},
        [DW_OP_div] = {dp_dwarf_binary, 2, DP_OP_DIV, DP_OP_UDIV, DP_OP_FDIV},
        [DW_OP_mod] = {dp_dwarf_binary, 2, DP_OP_MOD, DP_OP_UMOD, DP_OP_NOT},
        [DW_OP_eq] = {dp_dwarf_binary, 2, DP_OP_EQ, DP_OP_EQ, DP_OP_FEQ},
        [DW_OP_ne] = {dp_dwarf_binary, 2, DP_OP_NE, DP_OP_NE, DP_OP_FNE},
        [DW_OP_lt] = {dp_dwarf_binary, 2, DP_OP_LT, DP_OP_ULT, DP_OP_FLT},
        [DW_OP_le] = {dp_dwarf_binary, 2, DP_OP_LE, DP_OP_ULE, DP_OP_FLE},
        [DW_OP_gt] = {dp_dwarf_binary, 2, DP_OP_GT, DP_OP_UGT, DP_OP_FGT},
        [DW_OP_ge] = {dp_dwarf_binary, 2, DP_OP_GE, DP_OP_UGE, DP_OP_FGE},
        [DW_OP_shl] = {.step = dp_dwarf_shift, .takes = 2, .of_signed = DP_OP_SHL},
        [DW_OP_shr] = {.step = dp_dwarf_shift, .takes = 2, .of_signed = DP_OP_LSHR},
        [DW_OP_shra] = {.step = dp_dwarf_shift, .takes = 2, .of_signed = DP_OP_SHR},

        [DW_OP_convert] = {.step = dp_dwarf_convert, .takes = 1},
        [DW_OP_GNU_convert] = {.step = dp_dwarf_convert, .takes = 1},
        [DW_OP_reinterpret] = {.step = dp_dwarf_reinterpret, .takes = 1},
        [DW_OP_GNU_reinterpret] = {.step = dp_dwarf_reinterpret, .takes = 1},
        [DW_OP_const_type] = {.step = dp_dwarf_typed_constant},
        [DW_OP_GNU_const_type] = {.step = dp_dwarf_typed_constant},
        [DW_OP_deref_type] = {.step = dp_dwarf_typed_load, .takes = 1},
        [DW_OP_GNU_deref_type] = {.step = dp_dwarf_typed_load, .takes = 1},
        [DW_OP_regval_type] = {.step = dp_dwarf_typed_register},
        [DW_OP_GNU_regval_type] = {.step = dp_dwarf_typed_register},

        [DW_OP_nop] = {.step = nothing},
        [DW_OP_skip] = {.step = skip},
        [DW_OP_bra] = {.step = branch, .takes = 1},

        [DW_OP_stack_value] = {.step = stack_value},
        [DW_OP_implicit_value] = {.step = implicit_value},
        [DW_OP_implicit_pointer] = {.step = implicit_pointer},
        [DW_OP_GNU_implicit_pointer] = {.step = implicit_pointer},
        [DW_OP_piece] = {.step = piece},
        [DW_OP_bit_piece] = {.step = bit_piece},
};

void dp_dwarf_start(struct dp_dwarf_machine *m, const struct dp_dwarf_back *back, void *data, unsigned *steps)
{
	/* Field by field, which is faster: a snapshot runs this for every variable, and most expressions are one operation. */
	m->back = back;
	m->data = data;
	m->debug = NULL;
	m->attr = NULL;
	m->steps = steps;
	m->why = NULL;
	m->is_implicit = false;
	m->npieces = m->n = 0;
	m->result = DP_DWARF_ADDRESS;
}

/* After a failure only pieces are run: the next piece may have a value. */
void dp_dwarf_run(struct dp_dwarf_machine *m, const Dwarf_Op *ops, size_t n)
{
	m->ops = ops;
	m->nops = n;
	m->at = 0;
	while (m->at < n && *m->steps) {
		--*m->steps;
		const Dwarf_Op *op = &ops[m->at++];
		const struct dp_dwarf_operation *o = &dp_dwarf_operations[op->atom];
		if (m->why && o->step != piece && o->step != bit_piece)
			continue;
		if (!o->step || m->n < o->takes)
			dp_dwarf_fail(m, DP_ABSENT_UNKNOWN);
		else
			o->step(m, op);
	}
	if (m->at < n)
		dp_dwarf_fail(m, DP_ABSENT_ENDLESS);
	if (m->npieces && m->why)
		end_piece(m, UINT64_MAX);
}
