/* SPDX-License-Identifier: MIT */
/*
 * A payload that needs no call: registers are stored, expressions computed, memory and strings copied with guarded loads. rsi
 * points to the record, or after a string to the byte that follows it; then the record's address is on the stack.
 *
 * A string is copied in words. A zero byte in a word sets a high bit in (w - 0x01..01) & ~w & 0x80..80, and the lowest such bit
 * is in that byte. If all words are in one page, only the first load can fault: the page is mapped or not. At the end of a page
 * the string is copied by bytes. At NULL nothing is read: a fault costs more than the rest of the hit. Bytes of a record after
 * its last field do not matter.
 */
#include "trampoline/arch/x86_64/emit/capture.h"

#include <stddef.h>
#include <string.h>

enum { PAGE = 4096, DOTS = 0x2e2e2e }; /* "...", NUL */

static bool is_string(const struct dp_field *f)
{
	return f->source == DP_SRC_STRING;
}

static bool has_strings(const struct dp_fields *fields)
{
	for (size_t i = 0; i < fields->n; i++)
		if (is_string(&fields->field[i]))
			return true;
	return false;
}

/* Registers and constants only. */
static bool is_plain(const struct dp_fields *fields)
{
	for (size_t i = 0; i < fields->n; i++)
		if (fields->field[i].source == DP_SRC_EXPR || dp_capture_may_fail(&fields->field[i]))
			return false;
	return !dp_fields_may_fault(fields);
}

static unsigned start(const struct dp_fields *fields)
{
	return (unsigned)sizeof(struct dp_record) + (dp_fields_may_fault(fields) ? DP_MASK_BYTES : 0);
}

static unsigned words_of(const struct dp_field *f)
{
	return (f->size + 7) / 8;
}

static struct dp_label found(const struct dp_capture_field *l, unsigned k)
{
	return (struct dp_label){(uint16_t)(l->found.id + k)};
}

/* Offset of the field from rsi. */
static unsigned place_of(const struct dp_fields *fields, size_t i)
{
	unsigned at = start(fields);
	for (size_t k = 0; k < i; k++) {
		const struct dp_field *f = &fields->field[k];
		const bool none = f->source == DP_SRC_NONE && (f->type == DP_TYPE_STRING || f->type == DP_TYPE_BACKTRACE);
		at = is_string(f) ? 0 : at + (none ? 1 : f->size);
	}
	return at;
}

/* ---- out of line: faults, and the ends of strings -------------------------------------------------------------------- */

static void mark(struct dp_capture_code *c, size_t i)
{
	unsigned record = DP_RSI;
	if (has_strings(c->fields)) {
		dp_asm_mov_load(c->a, 8, dp_rm_mem(DP_RSP, 0), DP_RAX);
		record = DP_RAX;
	}
	dp_asm_alu_imm(c->a, DP_ALU_OR, 1, 1 << i % 8, dp_rm_mem(record, (int64_t)(sizeof(struct dp_record) + i / 8)));
}

static void empty_string(struct dp_capture_code *c, size_t i, unsigned at)
{
	mark(c, i);
	dp_asm_mov_const(c->a, 0, DP_RAX);
	dp_asm_mov_store(c->a, 1, DP_RAX, dp_rm_mem(DP_RSI, at));
	dp_asm_lea(c->a, dp_rm_mem(DP_RSI, at + 1), DP_RSI);
	dp_asm_jmp(c->a, c->field[i].back);
}

/* The end of a string in each word; an end beyond the limit does not count. */
static void put_ends(struct dp_capture_code *c, const struct dp_field *f, const struct dp_capture_field *l, unsigned at)
{
	for (unsigned k = 0; k < words_of(f); k++) {
		dp_asm_bind(c->a, found(l, k));
		dp_asm_bsf(c->a, DP_RCX, DP_RCX);
		dp_asm_shift(c->a, DP_SHIFT_SHR, 3, DP_RCX);
		if (8 * (k + 1) > f->size) {
			dp_asm_alu_imm(c->a, DP_ALU_CMP, 4, (int32_t)(f->size - 8 * k), dp_rm_reg(DP_RCX));
			dp_asm_jcc(c->a, DP_CC_AE, l->cut);
		}
		dp_asm_lea(c->a, dp_rm_index(DP_RSI, DP_RCX, at + 8 * k + 1), DP_RSI);
		dp_asm_jmp(c->a, l->back);
	}
	dp_asm_bind(c->a, l->cut);
	dp_asm_mov_const(c->a, DOTS, DP_RAX);
	dp_asm_mov_store(c->a, 4, DP_RAX, dp_rm_mem(DP_RSI, at + f->size - 4));
	dp_asm_lea(c->a, dp_rm_mem(DP_RSI, at + f->size), DP_RSI);
	dp_asm_jmp(c->a, l->back);
}

static void put_bytewise(struct dp_capture_code *c, const struct dp_field *f, const struct dp_capture_field *l, unsigned at)
{
	struct dp_asm *a = c->a;
	struct dp_label again = dp_asm_label(a);
	dp_asm_bind(a, l->slow);
	dp_asm_lea(a, dp_rm_mem(DP_RSI, at), DP_RSI);
	dp_asm_mov_const(a, f->size, DP_RCX);
	dp_asm_bind(a, again);
	dp_asm_guard(a, l->slow_fault);
	dp_asm_mov_zx(a, 1, dp_rm_mem(DP_RDX, 0), DP_RAX);
	dp_asm_mov_store(a, 1, DP_RAX, dp_rm_mem(DP_RSI, 0));
	dp_asm_alu_imm(a, DP_ALU_ADD, 8, 1, dp_rm_reg(DP_RSI));
	dp_asm_alu_imm(a, DP_ALU_ADD, 8, 1, dp_rm_reg(DP_RDX));
	dp_asm_test(a, 4, DP_RAX, dp_rm_reg(DP_RAX));
	dp_asm_jcc(a, DP_CC_E, l->back);
	dp_asm_alu_imm(a, DP_ALU_SUB, 4, 1, dp_rm_reg(DP_RCX));
	dp_asm_jcc(a, DP_CC_NE, again);
	dp_asm_mov_const(a, DOTS, DP_RAX);
	dp_asm_mov_store(a, 4, DP_RAX, dp_rm_mem(DP_RSI, -4));
	dp_asm_jmp(a, l->back);
}

/* rax is 0. */
static void put_null(struct dp_capture_code *c, size_t i, unsigned at)
{
	_Static_assert(sizeof(DP_NULL_TEXT) == 5 && sizeof(DP_NULL_TEXT) <= DP_CAPTURE_STRING_MIN, "it fits");
	uint32_t text;
	memcpy(&text, DP_NULL_TEXT, sizeof(text));
	dp_asm_bind(c->a, c->field[i].null);
	dp_asm_mov_store(c->a, 1, DP_RAX, dp_rm_mem(DP_RSI, at + sizeof(text)));
	mark(c, i);
	dp_asm_mov_const(c->a, text, DP_RAX);
	dp_asm_mov_store(c->a, 4, DP_RAX, dp_rm_mem(DP_RSI, at));
	dp_asm_lea(c->a, dp_rm_mem(DP_RSI, at + sizeof(DP_NULL_TEXT)), DP_RSI);
	dp_asm_jmp(c->a, c->field[i].back);
}

static void put_string_aside(struct dp_capture_code *c, size_t i)
{
	const struct dp_field *f = &c->fields->field[i];
	const struct dp_capture_field *l = &c->field[i];
	const unsigned at = place_of(c->fields, i);
	put_ends(c, f, l, at);
	put_bytewise(c, f, l, at);
	if (!f->is_array)
		put_null(c, i, at);
	dp_asm_bind(c->a, l->slow_fault); /* rcx bytes are left: return to the string's start */
	dp_asm_lea(c->a, dp_rm_index(DP_RSI, DP_RCX, -(int64_t)f->size), DP_RSI);
	empty_string(c, i, 0);
	dp_exits_put(c->a, &l->exits);
	empty_string(c, i, at);
}

static void put_value_aside(struct dp_capture_code *c, size_t i)
{
	const struct dp_field *f = &c->fields->field[i];
	unsigned at = place_of(c->fields, i);
	dp_exits_put(c->a, &c->field[i].exits);
	mark(c, i);
	dp_asm_mov_const(c->a, 0, DP_RAX);
	for (unsigned left = f->source == DP_SRC_MEMORY ? f->size : 0; left > 0;) {
		unsigned size = dp_capture_piece(left);
		dp_asm_mov_store(c->a, size, DP_RAX, dp_rm_mem(DP_RSI, at));
		at += size;
		left -= size;
	}
	dp_asm_jmp(c->a, c->field[i].back);
}

void dp_capture_put_aside(struct dp_capture_code *c)
{
	for (size_t i = 0; i < c->fields->n; i++) {
		if (!dp_capture_may_fail(&c->fields->field[i]))
			continue;
		if (c->calls)
			dp_capture_put_aside_called(c, i);
		else if (is_string(&c->fields->field[i]))
			put_string_aside(c, i);
		else
			put_value_aside(c, i);
	}
}

/* ---- inline ------------------------------------------------------------------------------------------------------------- */

/* Loads the address into rax. */
static void locate(struct dp_capture_code *c, size_t i)
{
	const struct dp_field *f = &c->fields->field[i];
	if (dp_capture_is_computed(f))
		dp_capture_compute(c, i);
	else
		dp_asm_mov_const(c->a, f->addr.v, DP_RAX);
}

static void copy_memory(struct dp_capture_code *c, size_t i, unsigned at)
{
	const unsigned total = c->fields->field[i].size;
	locate(c, i);
	for (unsigned done = 0; done < total;) {
		unsigned size = dp_capture_piece(total - done);
		dp_asm_guard(c->a, c->field[i].exits.at[0]);
		dp_asm_mov_zx(c->a, size, dp_rm_mem(DP_RAX, done), DP_RCX);
		dp_asm_mov_store(c->a, size, DP_RCX, dp_rm_mem(DP_RSI, at + done));
		done += size;
	}
	dp_asm_bind(c->a, c->field[i].back);
}

static void copy_string(struct dp_capture_code *c, size_t i, unsigned at)
{
	struct dp_asm *a = c->a;
	const struct dp_field *f = &c->fields->field[i];
	const struct dp_capture_field *l = &c->field[i];
	locate(c, i);
	if (!f->is_array) {
		dp_asm_test(a, 8, DP_RAX, dp_rm_reg(DP_RAX));
		dp_asm_jcc(a, DP_CC_E, l->null);
	}
	dp_asm_mov_store(a, 8, DP_RAX, dp_rm_reg(DP_RDX));
	dp_asm_alu_imm(a, DP_ALU_AND, 4, PAGE - 1, dp_rm_reg(DP_RAX));
	dp_asm_alu_imm(a, DP_ALU_CMP, 4, (int32_t)(PAGE - 8 * words_of(f)), dp_rm_reg(DP_RAX));
	dp_asm_jcc(a, DP_CC_A, l->slow);
	for (unsigned k = 0; k < words_of(f); k++) {
		dp_asm_guard(a, l->exits.at[0]);
		dp_asm_mov_load(a, 8, dp_rm_mem(DP_RDX, 8 * k), DP_RAX);
		dp_asm_mov_store(a, 8, DP_RAX, dp_rm_mem(DP_RSI, at + 8 * k));
		dp_asm_mov_store(a, 8, DP_RAX, dp_rm_reg(DP_RCX));
		dp_asm_alu_label(a, DP_ALU_SUB, c->ones, DP_RAX);
		dp_asm_unary(a, DP_UNARY_NOT, DP_RCX);
		dp_asm_alu_store(a, DP_ALU_AND, 8, DP_RAX, dp_rm_reg(DP_RCX));
		dp_asm_alu_label(a, DP_ALU_AND, c->highs, DP_RCX);
		dp_asm_jcc(a, DP_CC_NE, found(l, k));
	}
	dp_asm_jmp(a, l->cut);
	dp_asm_bind(a, l->back);
}

/* Returns the offset of the next field from rsi. */
static unsigned put_field(struct dp_capture_code *c, size_t i, unsigned at)
{
	const struct dp_field *f = &c->fields->field[i];
	if (f->source == DP_SRC_EXPR) {
		dp_capture_compute(c, i);
		if (dp_capture_may_fail(f))
			dp_asm_bind(c->a, c->field[i].back);
		dp_capture_store_value(c, i, dp_rm_mem(DP_RSI, at));
		return at + f->size;
	}
	if (f->source == DP_SRC_MEMORY) {
		copy_memory(c, i, at);
		return at + f->size;
	}
	if (is_string(f)) {
		copy_string(c, i, at);
		return 0;
	}
	return at + dp_capture_store(c->a, &c->view, f, dp_rm_mem(DP_RSI, at));
}

static void plain(struct dp_capture_code *c)
{
	unsigned at = sizeof(struct dp_record);
	for (size_t i = 0; i < c->fields->n; i++)
		at += dp_capture_store(c->a, &c->view, &c->fields->field[i], dp_rm_mem(DP_RCX, at));
	if (c->rt.enter)
		dp_asm_mov_const(c->a, at - sizeof(struct dp_record), DP_RDX);
}

void dp_capture_inline(struct dp_capture_code *c)
{
	const bool strings = has_strings(c->fields);
	unsigned at = start(c->fields);
	if (is_plain(c->fields)) {
		plain(c);
		return;
	}
	dp_asm_mov_store(c->a, 8, DP_RCX, dp_rm_reg(DP_RSI));
	if (strings) {
		dp_asm_push(c->a, DP_RCX);
		c->view.pushed = 8;
	}
	if (dp_fields_may_fault(c->fields)) {
		dp_asm_mov_const(c->a, dp_capture_none(c->fields), DP_RAX);
		dp_asm_mov_store(c->a, 8, DP_RAX, dp_rm_mem(DP_RSI, sizeof(struct dp_record)));
	}
	for (size_t i = 0; i < c->fields->n; i++)
		at = put_field(c, i, at);
	if (strings) {
		dp_asm_pop(c->a, DP_RCX);
		c->view.pushed = 0;
	} else {
		dp_asm_mov_store(c->a, 8, DP_RSI, dp_rm_reg(DP_RCX));
	}
	if (c->rt.enter) {
		dp_asm_lea(c->a, dp_rm_mem(DP_RSI, (int64_t)at - (int64_t)sizeof(struct dp_record)), DP_RDX);
		dp_asm_alu_store(c->a, DP_ALU_SUB, 8, DP_RCX, dp_rm_reg(DP_RDX));
	}
}
