/* SPDX-License-Identifier: MIT */
/*
 * Compares strings with a constant text. If the text's whole length, from the string's start, is in one page, it is compared in
 * machine words: the bytes after the string's end are then as readable as the string itself. At the end of a page, for patterns,
 * and for long texts the agent compares, character by character.
 */
#include "trampoline/arch/x86_64/expr/expr_code.h"

#include <string.h>

enum { PAGE = 4096, INLINE_MAX = 32 };

bool dp_code_is_comm(const struct dp_expr *e)
{
	return e->a->kind == DP_EXPR_FACT && e->a->value == DP_FACT_COMM;
}

static size_t length(const struct dp_expr *e)
{
	return strlen(e->text) + (e->match == DP_MATCH_EQUAL);
}

static unsigned piece(size_t left)
{
	return left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
}

unsigned dp_code_match_guards(const struct dp_expr *e)
{
	unsigned n = 0;
	if (e->match == DP_MATCH_GLOB || dp_code_is_comm(e) || length(e) > INLINE_MAX)
		return 0;
	for (size_t left = length(e); left > 0; left -= piece(left))
		n++;
	return n;
}

static void ask(struct dp_expr_code *c, const struct dp_expr *e)
{
	static const uint8_t kind[] = {DP_ASK_EQUAL, DP_ASK_PREFIX, DP_ASK_GLOB};
	bool comm = dp_code_is_comm(e);
	dp_code_ask(c, &(struct dp_ask){.kind = kind[e->match], .comm = comm}, e->text, !comm);
	dp_asm_test(c->a, 8, DP_RAX, dp_rm_reg(DP_RAX));
}

/* Compares the text with the string at rax. */
static void compare_pieces(struct dp_expr_code *c, const struct dp_expr *e, struct dp_label differ)
{
	const size_t n = length(e);
	for (size_t at = 0; at < n; at += piece(n - at)) {
		unsigned size = piece(n - at);
		struct dp_rm there = dp_rm_mem(DP_RAX, (int64_t)at);
		uint64_t k = 0;
		memcpy(&k, e->text + at, size); /* the NUL is part of the text */
		if (size == 8)
			dp_asm_mov_const(c->a, k, DP_RCX);
		dp_asm_guard(c->a, dp_code_failure(c));
		if (size == 8)
			dp_asm_alu_store(c->a, DP_ALU_CMP, 8, DP_RCX, there);
		else
			dp_asm_alu_imm(c->a, DP_ALU_CMP, size, (int32_t)(uint32_t)k, there);
		dp_asm_jcc(c->a, DP_CC_NE, differ);
	}
}

static void match_inline(struct dp_expr_code *c, const struct dp_expr *e, bool sense, struct dp_label to)
{
	struct dp_label end = dp_asm_label(c->a), slow = dp_asm_label(c->a);
	struct dp_label same = sense ? to : end, differ = sense ? end : to;
	dp_code_claim(c, DP_RCX);
	dp_asm_mov_store(c->a, 4, DP_RAX, dp_rm_reg(DP_RCX));
	dp_asm_alu_imm(c->a, DP_ALU_AND, 4, PAGE - 1, dp_rm_reg(DP_RCX));
	dp_asm_alu_imm(c->a, DP_ALU_CMP, 4, (int32_t)(PAGE - length(e)), dp_rm_reg(DP_RCX));
	dp_asm_jcc(c->a, DP_CC_A, slow);
	compare_pieces(c, e, differ);
	dp_asm_jmp(c->a, same);
	dp_asm_bind(c->a, slow);
	ask(c, e);
	dp_asm_jcc(c->a, sense ? DP_CC_NE : DP_CC_E, to);
	dp_asm_bind(c->a, end);
}

/* The agent gets the address of both numbers, on the stack. */
static void ask_counted(struct dp_expr_code *c, const struct dp_expr *e)
{
	struct dp_ask how = {.kind = DP_ASK_GLOB, .count = e->is_signed ? DP_COUNT_SIGNED : DP_COUNT_UNSIGNED};
	_Static_assert(offsetof(struct dp_counted_text, n) == 8, "pushed first");
	dp_code_push(c, e->b);
	dp_code_push(c, e->a);
	dp_asm_mov_store(c->a, 8, DP_RSP, dp_rm_reg(DP_RAX));
	dp_code_ask(c, &how, e->text, true);
	dp_code_drop(c, 2);
	dp_asm_test(c->a, 8, DP_RAX, dp_rm_reg(DP_RAX));
}

void dp_code_match(struct dp_expr_code *c, const struct dp_expr *e, bool sense, struct dp_label to)
{
	unsigned guards = dp_code_match_guards(e);
	dp_code_claim(c, DP_RAX);
	if (e->b) {
		ask_counted(c, e);
		dp_asm_jcc(c->a, sense ? DP_CC_NE : DP_CC_E, to);
		return;
	}
	if (!dp_code_is_comm(e))
		dp_expr_value(c, e->a);
	if (guards && dp_code_guards(c, guards)) {
		match_inline(c, e, sense, to);
		return;
	}
	ask(c, e);
	dp_asm_jcc(c->a, sense ? DP_CC_NE : DP_CC_E, to);
}
