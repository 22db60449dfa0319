/* SPDX-License-Identifier: MIT */
#include "trampoline/arch/x86_64/capture.h"

bool dp_capture_is_called(const struct dp_field *f)
{
	return f->source == DP_SRC_MEMORY || f->source == DP_SRC_STRING || f->source == DP_SRC_UNWIND;
}

bool dp_capture_calls(const struct dp_fields *fields)
{
	for (size_t i = 0; i < fields->n; i++)
		if (dp_capture_is_called(&fields->field[i]))
			return true;
	return false;
}

size_t dp_capture_reserve(const struct dp_fields *fields)
{
	return (sizeof(struct dp_record) + dp_fields_max_payload(fields) + 7) & ~(size_t)7;
}

void dp_capture_put_ops(struct dp_asm *a, const struct dp_fields *fields)
{
	for (size_t i = 0; i < fields->n; i++) {
		const struct dp_field *f = &fields->field[i];
		struct dp_op op = {.addr = f->addr.v, .size = f->size, .field = (uint16_t)i};
		if (dp_capture_is_called(f))
			dp_asm_data(a, &op, sizeof(op));
	}
}

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

unsigned dp_capture_store(struct dp_asm *a, const struct dp_view *view, const struct dp_field *f, struct dp_rm to)
{
	if (f->source == DP_SRC_REG) {
		store_reg(a, view, f, to);
	} else if (f->source == DP_SRC_XMM) {
		store_xmm(a, f, to);
	} else {
		if (f->source == DP_SRC_RIP)
			dp_asm_mov_const(a, view->rip, DP_RAX);
		else
			dp_view_load_rflags(a, view);
		dp_asm_mov_store(a, f->size, DP_RAX, to);
	}
	return f->size;
}

unsigned dp_capture_inline(struct dp_asm *a, const struct dp_view *view, const struct dp_fields *fields)
{
	unsigned at = sizeof(struct dp_record);
	for (size_t i = 0; i < fields->n; i++)
		at += dp_capture_store(a, view, &fields->field[i], dp_rm_mem(DP_RCX, at));
	return at - (unsigned)sizeof(struct dp_record);
}
