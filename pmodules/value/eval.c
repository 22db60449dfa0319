/* SPDX-License-Identifier: MIT */
/*
 * Evaluates DWARF expressions in a frame with known registers: the machine's values are numbers (probes/dwarf/dwarf_machine.h).
 */
#include "pmodules/value/eval.h"
#include "probes/dwarf/dwarf_machine.h"
#include "probes/record/expr_internal.h"

#include <string.h>

enum { NESTING_MAX = 4, OBJECT_MAX = 4096, VECTORS = 16 };

struct evaluation {
	struct dp_dwarf_machine machine;
	const struct dp_eval *e;
	struct dp_value *into;
	uint64_t done;  /* bytes covered by pieces so far */
	uint8_t *bytes; /* of the object, followed by a validity flag for each; NULL until the first piece */
	bool any;
	const char *why; /* of the first missing piece */
	unsigned steps;
};

/* ---- numbers ------------------------------------------------------------------------------------------------------------ */

static const struct dp_eval *eval_of(const struct dp_dwarf_machine *m)
{
	return ((const struct evaluation *)m->data)->e;
}

static const char *load(struct dp_dwarf_machine *m, union dp_dwarf_value addr, unsigned size, union dp_dwarf_value *ret)
{
	ret->number = 0;
	return dp_debug_ctx_get(eval_of(m)->w, addr.number, &ret->number, size, NULL)
	               ? NULL
	               : "the memory that holds its location cannot be read";
}

/* ---- the frame's values --------------------------------------------------------------------------------------------------- */

static const uint64_t *vector(const struct dp_eval *e, uint64_t number)
{
	const struct dp_fstate *f = e->frame;
	return f && f->xmm && number - DP_DWARF_VECTOR < VECTORS ? f->xmm[number - DP_DWARF_VECTOR] : NULL;
}

static const char *reg(struct dp_dwarf_machine *m, uint64_t number, union dp_dwarf_value *ret)
{
	const struct dp_eval *e = eval_of(m);
	const struct dp_fstate *f = e->frame;
	const uint64_t *xmm;
	if (f && number < DP_DWARF_REGS && f->regs.known >> number & 1)
		ret->number = f->regs.value[number];
	else if ((xmm = vector(e, number)) != NULL)
		ret->number = xmm[0];
	else
		return DP_WHY_OPTIMIZED;
	return NULL;
}

static const char *cfa(struct dp_dwarf_machine *m, union dp_dwarf_value *ret)
{
	const struct dp_fstate *f = eval_of(m)->frame;
	ret->number = f ? f->cfa : 0;
	return ret->number ? NULL : DP_WHY_OPTIMIZED;
}

/* For evaluating another expression on behalf of this one. */
static struct dp_eval nested(const struct dp_dwarf_machine *m)
{
	struct dp_eval e = *eval_of(m);
	e.steps = m->steps;
	return e;
}

static const char *frame_base(struct dp_dwarf_machine *m, union dp_dwarf_value *ret)
{
	struct dp_eval e = nested(m);
	const struct dp_eval_base *base = e.base;
	if (!base || !base->n)
		return DP_WHY_OPTIMIZED;
	if (e.nesting++ >= NESTING_MAX)
		return DP_ABSENT_CIRCLE;
	e.attr = (Dwarf_Attribute *)&base->attr;
	return dp_eval_number(&e, base->ops, base->n, &ret->number);
}

static const char *entry(struct dp_dwarf_machine *m, uint64_t number, union dp_dwarf_value *ret)
{
	const struct dp_eval e = nested(m);
	if (e.nesting >= NESTING_MAX)
		return DP_ABSENT_CIRCLE;
	if (number >= DP_DWARF_VECTOR + VECTORS)
		return DP_WHY_UNKNOWN;
	return e.entry ? e.entry(&e, (unsigned)number, &ret->number) : DP_WHY_OPTIMIZED;
}

static const char *tls(struct dp_dwarf_machine *m, union dp_dwarf_value offset, union dp_dwarf_value *ret)
{
	return m->why ? m->why : dp_eval_tls(eval_of(m), offset.number, &ret->number);
}

/* ---- results ------------------------------------------------------------------------------------------------------------ */

/* Stores the machine's result as at most n bytes. Returns how many; 0, with m->why, if there are none. */
static size_t bytes_of(struct dp_dwarf_machine *m, uint8_t *to, size_t n)
{
	union dp_dwarf_value v = {0};
	const void *from = &v;
	size_t have = sizeof(v.number);
	if (m->result == DP_DWARF_BLOCK) {
		from = m->block.data;
		have = m->block.length;
	} else if (m->result == DP_DWARF_REGISTER && m->reg >= DP_DWARF_VECTOR) {
		from = vector(eval_of(m), m->reg);
		have = 2 * sizeof(uint64_t);
	} else if (m->result == DP_DWARF_REGISTER) {
		const char *why = reg(m, m->reg, &v);
		if (why)
			dp_dwarf_fail(m, why);
	} else if (m->n) {
		v = dp_dwarf_pop(m).value;
	} else {
		from = NULL;
	}
	if (!from)
		dp_dwarf_fail(m, DP_WHY_OPTIMIZED);
	n = m->why ? 0 : n < have ? n : have;
	if (n)
		memcpy(to, from, n);
	return n;
}

static bool is_in_memory(struct dp_dwarf_machine *m)
{
	return !m->why && m->result == DP_DWARF_ADDRESS && m->n;
}

static void piece(struct dp_dwarf_machine *m, uint64_t size)
{
	struct evaluation *v = m->data;
	const uint64_t whole = v->into->type->size;
	size_t got;
	if (!v->bytes && whole && whole <= OBJECT_MAX)
		v->bytes = dp_arena_alloc(&v->e->w->arena, 2 * whole);
	size = size < whole - v->done ? size : whole - v->done;
	if (!v->bytes || !size)
		return;
	if (is_in_memory(m)) {
		bool late = false;
		got = dp_debug_ctx_read(v->e->w, dp_dwarf_pop(m).value.number, v->bytes + v->done, size, &late);
		v->into->late |= late;
	} else {
		got = m->why ? 0 : bytes_of(m, v->bytes + v->done, size);
	}
	memset(v->bytes + whole + v->done, 1, got);
	v->done += size;
	v->any |= got > 0;
	v->why = v->why ? v->why : m->why;
}

static const struct dp_dwarf_back back = {.constant = dp_dwarf_number,
                                          .reg = reg,
                                          .load = load,
                                          .apply = dp_dwarf_number_apply,
                                          .cast = dp_dwarf_number_cast,
                                          .is_number = dp_dwarf_number_get,
                                          .cfa = cfa,
                                          .frame_base = frame_base,
                                          .entry = entry,
                                          .tls = tls,
                                          .piece = piece};

/* ---- entry points ------------------------------------------------------------------------------------------------------- */

static struct dp_dwarf_machine *start(struct evaluation *v, const struct dp_eval *e, struct dp_value *into)
{
	dp_dwarf_start(&v->machine, &back, v, e->steps ? e->steps : &v->steps);
	v->machine.debug = e->debug;
	v->machine.attr = e->attr;
	v->e = e;
	v->into = into;
	v->done = 0;
	v->bytes = NULL;
	v->any = false;
	v->why = NULL;
	v->steps = DP_DWARF_STEPS;
	if (e->has_initial)
		dp_dwarf_push(&v->machine, NULL, (union dp_dwarf_value){.number = e->initial});
	return &v->machine;
}

const char *dp_eval_number(const struct dp_eval *e, const Dwarf_Op *ops, size_t n, uint64_t *ret)
{
	struct evaluation v;
	struct dp_value none = {.type = &dp_ctype_void};
	struct dp_dwarf_machine *m = start(&v, e, &none);
	dp_dwarf_run(m, ops, n);
	if (m->npieces || m->result == DP_DWARF_BLOCK || (m->result != DP_DWARF_REGISTER && !m->n))
		dp_dwarf_fail(m, DP_WHY_UNKNOWN);
	if (!m->why)
		bytes_of(m, (uint8_t *)ret, sizeof(*ret));
	return m->why;
}

static void nowhere(struct dp_value *into, const char *why)
{
	into->where = DP_VALUE_NOWHERE;
	into->why = why;
}

static void is_bytes(struct dp_value *into, const uint8_t *bytes, const uint8_t *valid, size_t n)
{
	into->where = DP_VALUE_BYTES;
	into->bytes = bytes;
	into->valid = valid;
	into->nbytes = n;
}

static void whole(struct dp_dwarf_machine *m, struct dp_value *into)
{
	const uint64_t want = into->type->size && into->type->size <= 64 ? into->type->size : DP_DWARF_WORD;
	if (is_in_memory(m)) {
		into->where = DP_VALUE_MEMORY;
		into->addr = dp_dwarf_pop(m).value.number;
		return;
	}
	uint8_t *bytes = m->why ? NULL : dp_arena_alloc(&eval_of(m)->w->arena, want);
	const size_t n = bytes ? bytes_of(m, bytes, want) : 0;
	if (!n || n < into->type->size)
		nowhere(into, m->why ? m->why : n ? DP_WHY_UNKNOWN : DP_WHY_OPTIMIZED);
	else
		is_bytes(into, bytes, NULL, n);
}

void dp_eval_place(const struct dp_eval *e, const Dwarf_Op *ops, size_t n, struct dp_value *into)
{
	struct evaluation v;
	struct dp_dwarf_machine *m = start(&v, e, into);
	dp_dwarf_run(m, ops, n);
	if (!m->npieces)
		whole(m, into);
	else if (v.any)
		is_bytes(into, v.bytes, v.bytes + into->type->size, into->type->size);
	else
		nowhere(into, v.why ? v.why : DP_WHY_UNKNOWN);
}
