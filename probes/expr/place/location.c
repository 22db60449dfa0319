/* SPDX-License-Identifier: MIT */
/*
 * Location expressions whose values are not known yet: the result is the computation that a stub makes at the site. Sources:
 * DWARF 5, section 2.6; the System V psABI for register numbers.
 */
#include "probes/dwarf/dwarf_machine.h"
#include "probes/expr/scope/scope_internal.h"
#include "probes/record/expr_internal.h"

#include <string.h>

struct location {
	struct dp_dwarf_machine machine;
	struct dp_scope *s;
	struct dp_storage pieces;
	bool is_nested; /* evaluated for another expression */
	unsigned steps;
};

static struct location *location_of(struct dp_dwarf_machine *m)
{
	return m->data;
}

static struct dp_arena *arena_of(struct dp_dwarf_machine *m)
{
	return &location_of(m)->s->arena;
}

static const char *known(struct dp_expr *e, union dp_dwarf_value *ret)
{
	ret->expr = e;
	return e ? NULL : DP_ABSENT_UNKNOWN;
}

static const char *constant(struct dp_dwarf_machine *m, uint64_t v, union dp_dwarf_value *ret)
{
	return known(dp_build_const(arena_of(m), v), ret);
}

static const char *reg(struct dp_dwarf_machine *m, uint64_t number, union dp_dwarf_value *ret)
{
	return known(dp_location_register(location_of(m)->s, number, DP_DWARF_WORD), ret);
}

static const char *load(struct dp_dwarf_machine *m, union dp_dwarf_value addr, unsigned size, union dp_dwarf_value *ret)
{
	if (size & (size - 1))
		return DP_ABSENT_UNKNOWN;
	return known(dp_build_load(arena_of(m), addr.expr, (uint8_t)size, false), ret);
}

static const char *apply(struct dp_dwarf_machine *m, enum dp_expr_op op, const union dp_dwarf_value operand[2],
                         union dp_dwarf_value *ret)
{
	if (dp_expr_is_unary(op))
		return known(dp_build_unary(arena_of(m), op, operand[0].expr), ret);
	return known(dp_build_binary(arena_of(m), op, operand[0].expr, operand[1].expr), ret);
}

static const char *cast(struct dp_dwarf_machine *m, union dp_dwarf_value v, struct dp_dwarf_type type, union dp_dwarf_value *ret)
{
	return known(dp_build_cast(arena_of(m), v.expr, type.size, type.is_signed), ret);
}

static bool is_number(struct dp_dwarf_machine *m, union dp_dwarf_value v, uint64_t *ret)
{
	(void)m;
	return dp_build_is_const(v.expr, ret);
}

static const char *cfa(struct dp_dwarf_machine *m, union dp_dwarf_value *ret)
{
	return known(dp_frame_cfa(location_of(m)->s), ret);
}

static const char *frame_base(struct dp_dwarf_machine *m, union dp_dwarf_value *ret)
{
	const char *absent = DP_ABSENT_UNKNOWN;
	if (location_of(m)->is_nested)
		return DP_ABSENT_CIRCLE;
	ret->expr = dp_frame_base(location_of(m)->s, &absent);
	return ret->expr ? NULL : absent;
}

/* The registers' values at the function's entry are available only there. */
static const char *entry(struct dp_dwarf_machine *m, uint64_t number, union dp_dwarf_value *ret)
{
	return location_of(m)->s->at_entry ? reg(m, number, ret) : DP_ABSENT_OPTIMIZED;
}

static const char *tls(struct dp_dwarf_machine *m, union dp_dwarf_value offset, union dp_dwarf_value *ret)
{
	const char *absent = DP_ABSENT_UNKNOWN;
	if (!offset.expr)
		return absent;
	ret->expr = dp_location_thread_local(location_of(m)->s, offset.expr, &absent);
	return ret->expr ? NULL : absent;
}

/* Adds a value that is stored in the debug information, in pieces of eight bytes. */
static void implicit_bytes(struct location *l, const uint8_t *bytes, uint64_t n)
{
	for (uint64_t at = 0; at < n; at += DP_DWARF_WORD) {
		const uint64_t size = n - at < DP_DWARF_WORD ? n - at : DP_DWARF_WORD;
		uint64_t v = 0;
		memcpy(&v, bytes + at, size);
		dp_storage_add(&l->s->arena, &l->pieces,
		               (struct dp_piece){.kind = DP_PIECE_VALUE, .size = size, .expr = dp_build_const(&l->s->arena, v)});
	}
}

static struct dp_expr *ends_with(struct dp_dwarf_machine *m, struct dp_piece *p)
{
	struct dp_expr *e = NULL;
	p->kind = m->result == DP_DWARF_ADDRESS ? DP_PIECE_MEMORY : DP_PIECE_VALUE;
	if (m->result == DP_DWARF_REGISTER)
		e = dp_location_register(location_of(m)->s, m->reg, DP_DWARF_WORD);
	else if (!m->n)
		p->absent = DP_ABSENT_OPTIMIZED;
	else
		e = dp_dwarf_pop(m).value.expr;
	if (e && p->kind == DP_PIECE_MEMORY && dp_location_is_dead(e)) {
		p->absent = DP_ABSENT_GONE;
		return NULL;
	}
	return e;
}

static void piece(struct dp_dwarf_machine *m, uint64_t size)
{
	struct location *l = location_of(m);
	struct dp_piece p = {.size = size, .is_implicit = m->is_implicit};
	if (m->is_implicit) {
		p.target = m->target;
		p.inside = m->inside;
	}
	if (m->result == DP_DWARF_BLOCK && size != UINT64_MAX && m->block.length != size)
		dp_dwarf_fail(m, DP_ABSENT_UNKNOWN);
	if (!m->why && m->result == DP_DWARF_BLOCK) {
		implicit_bytes(l, m->block.data, m->block.length);
		return;
	}
	p.expr = m->why ? NULL : ends_with(m, &p);
	if (!p.expr) {
		p.kind = DP_PIECE_NONE;
		p.absent = m->why ? m->why : p.absent ? p.absent : DP_ABSENT_UNKNOWN;
	}
	dp_storage_add(&l->s->arena, &l->pieces, p);
}

static const struct dp_dwarf_back back = {.constant = constant,
                                          .reg = reg,
                                          .load = load,
                                          .apply = apply,
                                          .cast = cast,
                                          .is_number = is_number,
                                          .cfa = cfa,
                                          .frame_base = frame_base,
                                          .entry = entry,
                                          .tls = tls,
                                          .piece = piece};

static struct dp_dwarf_machine *start(struct location *l, struct dp_scope *s, Dwarf_Attribute *attr, bool is_nested)
{
	dp_dwarf_start(&l->machine, &back, l, &l->steps);
	l->machine.debug = s->debug;
	l->machine.attr = attr;
	l->s = s;
	l->pieces = (struct dp_storage){0};
	l->is_nested = is_nested;
	l->steps = DP_DWARF_STEPS;
	return &l->machine;
}

struct dp_storage dp_location_of(struct dp_scope *s, Dwarf_Attribute *attr)
{
	Dwarf_Op *ops;
	size_t n;
	struct location l;
	if (dwarf_getlocation_addr(attr, s->pc, &ops, &n, 1) != 1 || !n)
		return dp_storage_none(&s->arena, DP_ABSENT_OPTIMIZED);
	struct dp_dwarf_machine *m = start(&l, s, attr, false);
	dp_dwarf_run(m, ops, n);
	if (!m->npieces)
		piece(m, UINT64_MAX);
	return l.pieces;
}

bool dp_location_behind(struct dp_scope *s, const struct dp_storage *pointer, struct dp_storage *ret)
{
	if (pointer->n != 1 || pointer->offset || !pointer->piece->is_implicit || pointer->piece->inside < 0)
		return false;
	Dwarf_Attribute attr = pointer->piece->target;
	*ret = dwarf_whatattr(&attr) == DW_AT_const_value ? dp_storage_constant(&s->arena, &attr) : dp_location_of(s, &attr);
	ret->offset += (uint64_t)pointer->piece->inside;
	return true;
}

struct dp_expr *dp_location_value(struct dp_scope *s, Dwarf_Attribute *attr, Dwarf_Op *ops, size_t n, const char **absent)
{
	struct location l;
	struct dp_dwarf_machine *m = start(&l, s, attr, true);
	struct dp_piece p = {.absent = NULL};
	dp_dwarf_run(m, ops, n);
	struct dp_expr *e = m->why || m->npieces || m->result == DP_DWARF_BLOCK ? NULL : ends_with(m, &p);
	if (!e)
		*absent = m->why ? m->why : DP_ABSENT_UNKNOWN;
	return e;
}

/* The expression starts with the object's address and uses its virtual table. */
struct dp_storage dp_location_base(struct dp_scope *s, const struct dp_storage *object, const struct dp_member *m)
{
	Dwarf_Die die = m->base ? m->base->die : (Dwarf_Die){0};
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;
	struct location l;
	const char *absent = "in a virtual base";
	struct dp_storage from = *object;
	from.offset += m->before;
	if (!die.addr || !dwarf_attr_integrate(&die, DW_AT_data_member_location, &attr) || dwarf_getlocation(&attr, &ops, &n) ||
	    !n)
		return dp_storage_none(&s->arena, absent);
	struct dp_expr *addr = dp_storage_address(&s->arena, &from, &absent);
	if (!addr)
		return dp_storage_none(&s->arena, absent);
	struct dp_dwarf_machine *machine = start(&l, s, &attr, true);
	dp_dwarf_push(machine, NULL, (union dp_dwarf_value){.expr = addr});
	dp_dwarf_run(machine, ops, n);
	if (machine->why || machine->npieces || machine->result != DP_DWARF_ADDRESS || machine->n != 1)
		return dp_storage_none(&s->arena, machine->why ? machine->why : DP_ABSENT_UNKNOWN);
	return dp_storage_memory(&s->arena, dp_dwarf_pop(machine).value.expr);
}
