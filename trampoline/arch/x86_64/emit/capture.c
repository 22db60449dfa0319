/* SPDX-License-Identifier: MIT */
#include "trampoline/arch/x86_64/emit/capture.h"

#include <assert.h>

/* ---- how a field is captured ----------------------------------------------------------------------------------------- */

static bool is_memory(const struct dp_field *f)
{
	return f->source == DP_SRC_MEMORY || f->source == DP_SRC_STRING;
}

bool dp_capture_is_called(const struct dp_capture_code *c, const struct dp_field *f)
{
	if (f->source == DP_SRC_UNWIND || f->source == DP_SRC_PARK)
		return true;
	if (!is_memory(f))
		return false;
	if (!c->rt.faults || c->calls || f->size > DP_CAPTURE_INLINE || f->count)
		return true;
	return f->source == DP_SRC_STRING && f->size < DP_CAPTURE_STRING_MIN;
}

bool dp_capture_is_computed(const struct dp_field *f)
{
	return f->expr && (f->source == DP_SRC_EXPR || is_memory(f));
}

bool dp_capture_may_fail(const struct dp_field *f)
{
	return is_memory(f) || (f->source == DP_SRC_EXPR && dp_expr_may_fail(f->expr));
}

unsigned dp_capture_piece(unsigned left)
{
	return left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
}

static unsigned guards_of(const struct dp_field *f)
{
	unsigned n = dp_capture_is_computed(f) ? dp_expr_guards(f->expr) + dp_expr_guards(f->count) : 0;
	if (f->source == DP_SRC_STRING)
		n += (f->size + 7) / 8 + 1;
	for (unsigned left = f->source == DP_SRC_MEMORY ? f->size : 0; left > 0; left -= dp_capture_piece(left))
		n++;
	return n;
}

static bool guards_suffice(const struct dp_fields *fields, unsigned guards)
{
	unsigned n = 0;
	for (size_t i = 0; i < fields->n && n <= guards; i++)
		if (!is_memory(&fields->field[i]) || fields->field[i].size <= DP_CAPTURE_INLINE)
			n += guards_of(&fields->field[i]);
	return n <= guards;
}

static struct dp_label labels(struct dp_asm *a, unsigned n)
{
	struct dp_label first = dp_asm_label(a);
	while (--n > 0)
		dp_asm_label(a);
	return first;
}

static void init_field(struct dp_asm *a, const struct dp_field *f, struct dp_capture_field *ret)
{
	*ret = (struct dp_capture_field){0};
	if (dp_capture_is_computed(f))
		dp_exits_init(a, f->expr, &ret->exits);
	if (f->count) { /* the same exits serve both */
		struct dp_exits more;
		dp_exits_init(a, f->count, &more);
		ret->exits = more.n > ret->exits.n ? more : ret->exits;
	}
	if (!ret->exits.n) {
		ret->exits.n = 1;
		ret->exits.at[0] = dp_asm_label(a);
	}
	ret->back = dp_asm_label(a);
	if (f->source != DP_SRC_STRING)
		return;
	ret->found = labels(a, DP_CAPTURE_INLINE / 8);
	ret->cut = dp_asm_label(a);
	ret->slow = dp_asm_label(a);
	ret->slow_fault = dp_asm_label(a);
	ret->null = dp_asm_label(a);
}

void dp_capture_init(struct dp_capture_code *c, const struct dp_runtime *rt, const struct dp_fields *fields, unsigned guards)
{
	c->rt = *rt;
	c->fields = fields;
	c->calls = false;
	c->ones = dp_asm_label(c->a);
	c->highs = dp_asm_label(c->a);
	if (rt->faults && !guards_suffice(fields, guards))
		c->rt.faults = false;
	for (size_t i = 0; i < fields->n; i++)
		c->calls = c->calls || dp_capture_is_called(c, &fields->field[i]);
	for (size_t i = 0; i < fields->n && i < sizeof(c->field) / sizeof(c->field[0]); i++)
		if (dp_capture_may_fail(&fields->field[i]))
			init_field(c->a, &fields->field[i], &c->field[i]);
}

/* Strings are copied in words: the last one may exceed the size. */
size_t dp_capture_reserve(const struct dp_fields *fields)
{
	size_t over = 0;
	for (size_t i = 0; i < fields->n; i++)
		if (fields->field[i].source == DP_SRC_STRING && fields->field[i].size % 8 &&
		    fields->field[i].size < DP_CAPTURE_INLINE)
			over = 8;
	return (sizeof(struct dp_record) + dp_fields_max_payload(fields) + over + 7) & ~(size_t)7;
}

static void put_op(struct dp_capture_code *c, size_t i)
{
	const struct dp_field *f = &c->fields->field[i];
	struct dp_op op = {.addr = f->addr.v, .size = f->size, .field = (uint16_t)i};
	dp_asm_data(c->a, &op, sizeof(op));
}

void dp_capture_put_data(struct dp_capture_code *c)
{
	static const uint64_t ones = UINT64_C(0x0101010101010101), highs = UINT64_C(0x8080808080808080);
	bool strings = false;
	for (size_t i = 0; i < c->fields->n; i++) {
		const struct dp_field *f = &c->fields->field[i];
		if (dp_capture_is_called(c, f))
			put_op(c, i);
		else
			strings = strings || f->source == DP_SRC_STRING;
	}
	if (!strings)
		return;
	dp_asm_bind(c->a, c->ones);
	dp_asm_data(c->a, &ones, sizeof(ones));
	dp_asm_bind(c->a, c->highs);
	dp_asm_data(c->a, &highs, sizeof(highs));
}

uint64_t dp_capture_none(const struct dp_fields *fields)
{
	uint64_t mask = 0;
	for (size_t i = 0; i < fields->n && i < 64; i++)
		if (fields->field[i].source == DP_SRC_NONE)
			mask |= UINT64_C(1) << i;
	return mask;
}

/* ---- fields that need no load --------------------------------------------------------------------------------------- */

static void store_xmm(struct dp_asm *a, const struct dp_field *f, struct dp_rm to)
{
	if (f->size == 4)
		dp_asm_movss_store(a, f->reg, to);
	else if (f->size == 8)
		dp_asm_movlps_store(a, f->reg, to);
	else
		dp_asm_movups_store(a, f->reg, to);
}

static void store_reg(struct dp_asm *a, const struct dp_view *view, const struct dp_field *f, struct dp_rm to)
{
	if (f->reg != DP_RSP && !f->shift && !dp_view_is_saved(view, f->reg)) {
		dp_asm_mov_store(a, f->size, f->reg, to);
		return;
	}
	dp_view_load(a, view, f->reg, f->shift, f->size, DP_RAX);
	dp_asm_mov_store(a, f->size, DP_RAX, to);
}

/* An empty string or backtrace is one byte. */
static unsigned store_none(struct dp_asm *a, const struct dp_field *f, struct dp_rm to)
{
	const unsigned n = f->type == DP_TYPE_STRING || f->type == DP_TYPE_BACKTRACE ? 1 : f->size;
	dp_asm_mov_const(a, 0, DP_RAX);
	for (unsigned left = n; left > 0;) {
		unsigned size = dp_capture_piece(left);
		dp_asm_mov_store(a, size, DP_RAX, to);
		to.disp += (int32_t)size;
		left -= size;
	}
	return n;
}

unsigned dp_capture_store(struct dp_asm *a, const struct dp_view *view, const struct dp_field *f, struct dp_rm to)
{
	if (f->source == DP_SRC_NONE)
		return store_none(a, f, to);
	if (f->source == DP_SRC_REG) {
		store_reg(a, view, f, to);
	} else if (f->source == DP_SRC_XMM) {
		store_xmm(a, f, to);
	} else {
		if (f->source == DP_SRC_RIP)
			dp_asm_mov_const(a, view->rip, DP_RAX);
		else {
			assert(f->source == DP_SRC_RFLAGS);
			dp_view_load_rflags(a, view);
		}
		dp_asm_mov_store(a, f->size, DP_RAX, to);
	}
	return f->size;
}

static void compute(struct dp_capture_code *c, size_t i, const struct dp_expr *value)
{
	struct dp_expr_code e = {.a = c->a, .rt = &c->rt, .view = c->view};
	if (dp_capture_may_fail(&c->fields->field[i]))
		e.exits = c->field[i].exits;
	dp_expr_value(&e, value);
}

void dp_capture_compute(struct dp_capture_code *c, size_t i)
{
	compute(c, i, c->fields->field[i].expr);
}

void dp_capture_compute_count(struct dp_capture_code *c, size_t i)
{
	compute(c, i, c->fields->field[i].count);
}

void dp_capture_store_value(struct dp_capture_code *c, size_t i, struct dp_rm to)
{
	const struct dp_field *f = &c->fields->field[i];
	struct dp_expr_code e = {.a = c->a, .rt = &c->rt, .view = c->view};
	dp_asm_mov_store(c->a, f->high ? 8 : f->size, DP_RAX, to);
	if (!f->high)
		return;
	to.disp += 8;
	dp_expr_value(&e, f->high);
	dp_asm_mov_store(c->a, 8, DP_RAX, to);
}
