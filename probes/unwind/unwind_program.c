/* SPDX-License-Identifier: MIT */
/*
 * Runs the call frame instructions of DWARF 5, 6.4.2, on the current row.
 *
 * A row has the form that the agent reads, so saving, restoring and comparing rows are struct copies. What a row cannot express
 * (other registers, unaligned offsets, general expressions) becomes UNKNOWN for a register and NONE for the CFA.
 */
#include "probes/elf/cfi_reader.h"
#include "probes/unwind/unwind_cfi.h"

#define DEPTH 16 /* of the remember_state stack */

enum { RSP = 4, RBP = 5 };

struct machine {
	struct dp_cfi_run *run;
	struct dp_cfi_reader r;
	uint64_t loc;
	struct dp_unwind_row row;
	struct dp_unwind_row saved[DEPTH];
	unsigned depth;
};

/* Maps DWARF's register numbers to those of struct dp_regs; 16 for any other register. */
static uint8_t register_of(uint64_t dwarf)
{
	static const uint8_t map[16] = {0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15};

	return dwarf < 16 ? map[dwarf] : 16;
}

/* Index of the row's rule for a DWARF register; -1 if there is none. */
static int rule_of(uint64_t dwarf)
{
	static const int8_t map[17] = {-1, -1, -1, DP_UNWIND_RBX, -1, -1, DP_UNWIND_RBP, DP_UNWIND_RSP, -1, -1, -1, -1, 3,
	                               4,  5,  6,  DP_UNWIND_RA};

	return dwarf < 17 ? map[dwarf] : -1;
}

static void set_rule(struct machine *m, uint64_t dwarf, int16_t rule)
{
	int i = rule_of(dwarf);

	if (i < 0)
		return;
	m->row.rule[i] = rule;
	if (i == DP_UNWIND_RA)
		return;
	m->row.changed = (uint8_t)(m->row.changed & ~(1u << i));
	if ((rule & 7) != DP_UNWIND_SAME)
		m->row.changed = (uint8_t)(m->row.changed | 1u << i);
}

/* A rule with a byte offset; UNKNOWN if rows cannot express the offset. */
static int16_t rule_at(enum dp_unwind_code code, int64_t offset)
{
	if (offset % 8 || offset / 8 > DP_UNWIND_RULE_MAX || offset / 8 < DP_UNWIND_RULE_MIN)
		return DP_UNWIND_RULE(DP_UNWIND_UNKNOWN, 0);
	return DP_UNWIND_RULE(code, offset / 8);
}

static int64_t factored(const struct machine *m, uint64_t n)
{
	return (int64_t)(n * (uint64_t)m->run->cie->data_align);
}

enum {
	OP_DEREF = 0x06,
	OP_AND = 0x1a,
	OP_MUL = 0x1e,
	OP_PLUS = 0x22,
	OP_PLUS_UCONST = 0x23,
	OP_SHL = 0x24,
	OP_GE = 0x2a,
	OP_LIT0 = 0x30,
	OP_LIT31 = 0x4f,
	OP_BREG0 = 0x70,
	OP_BREG16 = 0x80,
};

static bool eat(struct dp_cfi_reader *r, uint8_t op)
{
	if (r->p == r->end || *r->p != op)
		return false;
	return dp_cfi_take(r, 1) != NULL;
}

static bool eat_breg(struct dp_cfi_reader *r, uint8_t *reg, int64_t *off)
{
	if (r->p == r->end || *r->p < OP_BREG0 || *r->p >= OP_BREG16)
		return false;
	*reg = register_of(dp_cfi_uint(r, 1) - OP_BREG0);
	*off = dp_cfi_sleb(r);
	return !r->bad;
}

static bool at_end(const struct dp_cfi_reader *r)
{
	return r->p == r->end && !r->bad;
}

static bool set_cfa(struct machine *m, enum dp_unwind_kind kind, uint8_t reg, int64_t off)
{
	m->row.kind = reg < 16 && off == (int32_t)off ? (uint8_t)kind : DP_UNWIND_NONE;
	m->row.reg = m->row.kind ? reg : 0;
	m->row.off = m->row.kind ? (int32_t)off : 0;
	m->row.index = 0;
	m->row.add = 0;
	return m->row.kind != DP_UNWIND_NONE;
}

/* "... deref; plus_uconst n": the CFA is stored in memory (functions that realign their stack). */
static void cfa_deref(struct machine *m, struct dp_cfi_reader *e, enum dp_unwind_kind kind, uint8_t index)
{
	uint64_t add = eat(e, OP_PLUS_UCONST) ? dp_cfi_uleb(e) : 0;

	m->row.kind = at_end(e) && add <= INT32_MAX ? (uint8_t)kind : DP_UNWIND_NONE;
	m->row.index = index;
	m->row.add = (int32_t)add;
}

/* "breg16 0; lit15; and; litN; ge; lit3; shl; plus": a PLT entry pushes once, at byte N. */
static void cfa_plt(struct machine *m, struct dp_cfi_reader *e)
{
	uint8_t n = 0;
	bool ok = dp_cfi_sleb(e) == 0 && eat(e, OP_LIT0 + 15) && eat(e, OP_AND) && e->p < e->end;

	if (ok) {
		n = (uint8_t)(dp_cfi_uint(e, 1) - OP_LIT0);
		ok = n < 16 && eat(e, OP_GE) && eat(e, OP_LIT0 + 3) && eat(e, OP_SHL) && eat(e, OP_PLUS) && at_end(e);
	}
	m->row.kind = ok && m->row.reg == RSP ? DP_UNWIND_PLT : DP_UNWIND_NONE;
	m->row.index = n;
}

static void cfa_expression(struct machine *m, struct dp_cfi_reader e)
{
	uint8_t reg, index;
	int64_t off, zero;

	if (!eat_breg(&e, &reg, &off) || !set_cfa(m, DP_UNWIND_REG, reg, off)) {
		m->row.kind = DP_UNWIND_NONE;
	} else if (eat(&e, OP_DEREF)) {
		cfa_deref(m, &e, DP_UNWIND_DEREF, 0);
	} else if (eat(&e, OP_BREG16)) {
		cfa_plt(m, &e);
	} else if (eat_breg(&e, &index, &zero)) {
		bool ok = zero == 0 && eat(&e, OP_LIT0 + 8) && eat(&e, OP_MUL) && eat(&e, OP_PLUS) && eat(&e, OP_DEREF);

		cfa_deref(m, &e, ok ? DP_UNWIND_INDEX : DP_UNWIND_NONE, index);
	} else if (!at_end(&e)) {
		m->row.kind = DP_UNWIND_NONE;
	}
}

static int16_t rule_expression(struct dp_cfi_reader e)
{
	uint8_t reg;
	int64_t off;

	if (!eat_breg(&e, &reg, &off) || !at_end(&e) || (reg != RSP && reg != RBP))
		return DP_UNWIND_RULE(DP_UNWIND_UNKNOWN, 0);
	return rule_at(reg == RSP ? DP_UNWIND_AT_RSP : DP_UNWIND_AT_RBP, off);
}

static struct dp_cfi_reader block(struct machine *m)
{
	uint64_t n = dp_cfi_uleb(&m->r);
	struct dp_cfi_reader e = m->r;

	if (!dp_cfi_take(&m->r, n))
		n = 0;
	e.end = e.p + n;
	return e;
}

static bool is_plain(const struct dp_unwind_row *row)
{
	int rbp = row->rule[DP_UNWIND_RBP] & 7, rbx = row->rule[DP_UNWIND_RBX] & 7;

	return row->kind == DP_UNWIND_REG && (row->reg == RSP || row->reg == RBP) &&
	       row->rule[DP_UNWIND_RA] == DP_UNWIND_RULE(DP_UNWIND_AT_CFA, -1) && row->rule[DP_UNWIND_RSP] == 0 &&
	       (rbp == DP_UNWIND_SAME || rbp == DP_UNWIND_AT_CFA) && (rbx == DP_UNWIND_SAME || rbx == DP_UNWIND_AT_CFA);
}

/* The row in its final form for the agent. */
static struct dp_unwind_row finished(const struct machine *m)
{
	struct dp_unwind_row row = m->row, plain = {0};

	if (m->run->cie->signal && row.rule[DP_UNWIND_RA] == DP_UNWIND_RULE(DP_UNWIND_AT_RSP, 21) &&
	    row.rule[DP_UNWIND_RSP] == DP_UNWIND_RULE(DP_UNWIND_AT_RSP, 20)) {
		plain.kind = DP_UNWIND_SIGNAL;
		return plain;
	}
	if (row.kind == DP_UNWIND_NONE)
		return plain;
	if (m->run->cie->signal)
		row.flags = DP_UNWIND_EXACT;
	else if (is_plain(&row))
		row.flags = DP_UNWIND_PLAIN;
	return row;
}

static void emit(struct machine *m)
{
	struct dp_unwind_row row;

	if (!m->run->ret || m->loc < m->run->start || m->loc >= m->run->end)
		return;
	row = finished(m);
	dp_unwind_rows_add(m->run->ret, (uint32_t)(m->loc - m->run->start), dp_unwind_rows_intern(m->run->ret, &row));
}

static void advance(struct machine *m, uint64_t delta)
{
	emit(m);
	m->loc += delta * m->run->cie->code_align;
}

static void restore(struct machine *m, uint64_t dwarf)
{
	int i = rule_of(dwarf);

	if (i >= 0)
		set_rule(m, dwarf, m->run->cie->initial.rule[i]);
}

static void in_register(struct machine *m, uint64_t dwarf, uint64_t from)
{
	uint8_t reg = register_of(from);

	set_rule(m, dwarf, reg < 16 ? DP_UNWIND_RULE(DP_UNWIND_IN_REG, reg) : DP_UNWIND_RULE(DP_UNWIND_UNKNOWN, 0));
}

static bool cfa_offset(struct machine *m, int64_t off)
{
	if (m->row.kind != DP_UNWIND_NONE && m->row.kind != DP_UNWIND_REG)
		return false;
	if (m->row.kind == DP_UNWIND_REG)
		set_cfa(m, DP_UNWIND_REG, m->row.reg, off);
	return true;
}

static bool cfa_register(struct machine *m, uint64_t dwarf)
{
	if (m->row.kind != DP_UNWIND_REG)
		return m->row.kind == DP_UNWIND_NONE;
	set_cfa(m, DP_UNWIND_REG, register_of(dwarf), m->row.off);
	return true;
}

static bool push_state(struct machine *m)
{
	if (m->depth == DEPTH)
		return false;
	m->saved[m->depth++] = m->row;
	return true;
}

static bool pop_state(struct machine *m)
{
	if (!m->depth)
		return false;
	m->row = m->saved[--m->depth];
	return true;
}

/* Instructions with a register and, mostly, an operand. */
static bool register_insn(struct machine *m, uint8_t op)
{
	uint64_t reg = dp_cfi_uleb(&m->r);

	switch (op) {
	case 0x05: /* offset_extended */
		set_rule(m, reg, rule_at(DP_UNWIND_AT_CFA, factored(m, dp_cfi_uleb(&m->r))));
		return true;
	case 0x11: /* offset_extended_sf */
		set_rule(m, reg, rule_at(DP_UNWIND_AT_CFA, factored(m, (uint64_t)dp_cfi_sleb(&m->r))));
		return true;
	case 0x2f: /* GNU_negative_offset_extended */
		set_rule(m, reg, rule_at(DP_UNWIND_AT_CFA, -factored(m, dp_cfi_uleb(&m->r))));
		return true;
	case 0x14: /* val_offset */
		set_rule(m, reg, rule_at(DP_UNWIND_VALUE, factored(m, dp_cfi_uleb(&m->r))));
		return true;
	case 0x15: /* val_offset_sf */
		set_rule(m, reg, rule_at(DP_UNWIND_VALUE, factored(m, (uint64_t)dp_cfi_sleb(&m->r))));
		return true;
	case 0x06: /* restore_extended */
		restore(m, reg);
		return true;
	case 0x07: /* undefined */
		set_rule(m, reg, DP_UNWIND_RULE(reg == 16 ? DP_UNWIND_END : DP_UNWIND_UNKNOWN, 0));
		return true;
	case 0x08: /* same_value */
		set_rule(m, reg, DP_UNWIND_RULE(DP_UNWIND_SAME, 0));
		return true;
	case 0x09: /* register */
		in_register(m, reg, dp_cfi_uleb(&m->r));
		return true;
	case 0x10: /* expression */
		set_rule(m, reg, rule_expression(block(m)));
		return true;
	case 0x16: /* val_expression */
		block(m);
		set_rule(m, reg, DP_UNWIND_RULE(DP_UNWIND_UNKNOWN, 0));
		return true;
	default:
		return false;
	}
}

static bool cfa_insn(struct machine *m, uint8_t op)
{
	uint64_t reg;

	switch (op) {
	case 0x0c: /* def_cfa */
		reg = dp_cfi_uleb(&m->r);
		set_cfa(m, DP_UNWIND_REG, register_of(reg), (int64_t)dp_cfi_uleb(&m->r));
		return true;
	case 0x12: /* def_cfa_sf */
		reg = dp_cfi_uleb(&m->r);
		set_cfa(m, DP_UNWIND_REG, register_of(reg), factored(m, (uint64_t)dp_cfi_sleb(&m->r)));
		return true;
	case 0x0d: /* def_cfa_register */
		return cfa_register(m, dp_cfi_uleb(&m->r));
	case 0x0e: /* def_cfa_offset */
		return cfa_offset(m, (int64_t)dp_cfi_uleb(&m->r));
	case 0x13: /* def_cfa_offset_sf */
		return cfa_offset(m, factored(m, (uint64_t)dp_cfi_sleb(&m->r)));
	case 0x0f: /* def_cfa_expression */
		cfa_expression(m, block(m));
		return true;
	default:
		return register_insn(m, op);
	}
}

static bool set_location(struct machine *m)
{
	uint64_t loc = dp_cfi_pointer(&m->r, m->run->cie->encoding);

	if (m->r.bad || loc < m->loc)
		return false;
	emit(m);
	m->loc = loc;
	return true;
}

static bool other_insn(struct machine *m, uint8_t op)
{
	switch (op) {
	case 0x00: /* nop */
		return true;
	case 0x01:
		return set_location(m);
	case 0x02: /* advance_loc1, 2, 4 */
	case 0x03:
	case 0x04:
		advance(m, dp_cfi_uint(&m->r, 1u << (op - 2)));
		return true;
	case 0x0a:
		return push_state(m);
	case 0x0b:
		return pop_state(m);
	case 0x2e: /* GNU_args_size */
		dp_cfi_uleb(&m->r);
		return true;
	default:
		return cfa_insn(m, op);
	}
}

static bool execute(struct machine *m)
{
	uint8_t op = (uint8_t)dp_cfi_uint(&m->r, 1);

	switch (op >> 6) {
	case 1:
		advance(m, op & 0x3f);
		return true;
	case 2:
		set_rule(m, op & 0x3f, rule_at(DP_UNWIND_AT_CFA, factored(m, dp_cfi_uleb(&m->r))));
		return true;
	case 3:
		restore(m, op & 0x3f);
		return true;
	default:
		return other_insn(m, op);
	}
}

bool dp_cfi_run(struct dp_cfi_run *run)
{
	struct machine m = {.run = run, .loc = run->loc, .row = run->row};

	m.r = (struct dp_cfi_reader){run->insns, run->insns + run->n, run->addr, false};
	while (m.r.p < m.r.end && m.loc < run->end)
		if (!execute(&m) || m.r.bad) {
			m.row = (struct dp_unwind_row){0};
			emit(&m);
			return false;
		}
	emit(&m);
	run->row = m.row;
	return true;
}
