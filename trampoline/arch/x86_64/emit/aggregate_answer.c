/* SPDX-License-Identifier: MIT */
/*
 * What a hit adds, and where: the values, the key's cells. All values are computed before a cell changes, so that a hit whose
 * second value is unreadable does not count for the first.
 */
#include "trampoline/arch/x86_64/emit/aggregate_stub.h"

static struct dp_expr_code code_of(struct dp_agg_stub *s)
{
	return (struct dp_expr_code){.a = &s->a, .rt = s->rt, .exits = s->exits, .view = s->view};
}

/* Into rax; preserves rsi. */
static void load(struct dp_agg_stub *s, const struct dp_expr *e)
{
	struct dp_expr_code c = code_of(s);
	if (e && !s->direct)
		dp_expr_value(&c, e);
}

void dp_agg_condition(struct dp_agg_stub *s)
{
	struct dp_expr_code c = code_of(s);
	if (s->req->when)
		dp_expr_jump(&c, s->req->when, false, s->restore);
}

static bool may_fail(const struct dp_agg *answer)
{
	bool some = answer && dp_expr_may_fail(answer->by);
	for (unsigned i = 0; answer && i < answer->nkeys; i++)
		some |= !answer->text[i].size && dp_expr_may_fail(answer->key[i]);
	for (; answer; answer = answer->next)
		some |= dp_expr_may_fail(answer->value);
	return some;
}

void dp_agg_undecided(struct dp_agg_stub *s)
{
	dp_agg_text_aside(s);
	if (!dp_expr_may_fail(s->req->when) && !may_fail(s->req->answer))
		return;
	dp_exits_put(&s->a, &s->exits);
	dp_asm_mov_const(&s->a, s->req->lost + offsetof(struct dp_lost, unreadable), DP_RAX);
	dp_asm_lock_inc(&s->a, dp_rm_mem(DP_RAX, 0));
	dp_asm_jmp(&s->a, s->restore);
}

/* ---- the frame's words --------------------------------------------------------------------------------------------------- */

static unsigned key_words(const struct dp_agg *answer)
{
	return answer->nkeys ? answer->nkeys + 1 + dp_agg_counts(answer, answer->nkeys) : 0;
}

unsigned dp_agg_room(const struct dp_agg *answer)
{
	unsigned n = key_words(answer);
	for (const struct dp_agg *a = answer->next ? answer : NULL; a; a = a->next)
		n++;
	return n;
}

struct dp_rm dp_agg_word(const struct dp_agg_stub *s, unsigned i)
{
	return dp_rm_mem(DP_RSP, dp_frame_words(s->room) + 8 * (int32_t)i);
}

/* ---- keys ---------------------------------------------------------------------------------------------------------------- */

bool dp_agg_unwinds(const struct dp_agg *answer)
{
	for (unsigned i = 0; i < answer->nkeys; i++)
		if (!answer->key[i])
			return true;
	return answer->stack;
}

static void store_keys(struct dp_agg_stub *s)
{
	const struct dp_agg *answer = s->req->answer;
	for (unsigned i = 0; i < answer->nkeys; i++) {
		if (!answer->key[i])
			continue;
		if (answer->text[i].size)
			dp_agg_text_load(s, i);
		else
			load(s, answer->key[i]);
		dp_asm_mov_store(&s->a, 8, DP_RAX, dp_agg_word(s, i + 1));
	}
	dp_asm_mov_const(&s->a, answer->nkeys, DP_RAX);
	dp_asm_mov_store(&s->a, 8, DP_RAX, dp_agg_word(s, 0));
}

/* Loads the key's cells into rsi, using the agent. NE: they are shared. */
static void emit_keyed(struct dp_agg_stub *s)
{
	if (s->req->answer->nkeys) {
		store_keys(s);
		dp_asm_lea(&s->a, dp_agg_word(s, 0), DP_RDX);
	} else {
		load(s, s->req->answer->by);
		dp_asm_mov_store(&s->a, 8, DP_RAX, dp_rm_reg(DP_RDX));
	}
	dp_asm_lea_label(&s->a, s->desc, DP_RAX);
	dp_asm_call(&s->a, s->rt->keyed, DP_RCX);
	dp_asm_test(&s->a, 8, DP_RSI, dp_rm_reg(DP_RSI));
	dp_asm_jcc(&s->a, DP_CC_E, s->restore);
	dp_asm_test(&s->a, 8, DP_RCX, dp_rm_reg(DP_RCX));
}

/* The same for the backtrace's cells: a capture of one field, whose helper returns cells instead of writing a record. */
static void emit_stacked(struct dp_agg_stub *s)
{
	struct dp_capture_code c = {.a = &s->a, .view = s->view, .desc = s->desc};
	if (s->req->answer->nkeys)
		store_keys(s);
	s->rt_stacked.backtrace = s->req->small_stack ? s->rt->stacked_apart : s->rt->stacked;
	s->rt_stacked.finish = s->rt->stacked_done;
	dp_capture_init(&c, &s->rt_stacked, &s->backtrace, 0);
	dp_asm_lea(&s->a, dp_rm_mem(DP_RSP, DP_FRAME_OUT), DP_RCX);
	dp_capture_call(&c);
	dp_asm_mov_load(&s->a, 8, dp_rm_mem(DP_RSP, DP_FRAME_OUT), DP_RSI);
	dp_asm_test(&s->a, 8, DP_RSI, dp_rm_reg(DP_RSI));
	dp_asm_jcc(&s->a, DP_CC_E, s->restore);
	dp_asm_alu_imm(&s->a, DP_ALU_CMP, 8, 0, dp_rm_mem(DP_RSP, DP_FRAME_OUT + 8));
}

/* ---- cells --------------------------------------------------------------------------------------------------------------- */

static void add(struct dp_agg_stub *s, int64_t cells, enum dp_agg_how how)
{
	const struct dp_agg *answer = s->req->answer;
	unsigned i = key_words(answer);
	if (!answer->next) {
		load(s, answer->value);
		dp_agg_apply(&s->a, s->rt, answer, cells, how);
		return;
	}
	for (const struct dp_agg *a = answer; a; a = a->next, i++) {
		load(s, a->value);
		dp_asm_mov_store(&s->a, 8, DP_RAX, dp_agg_word(s, i));
	}
	i = key_words(answer);
	for (const struct dp_agg *a = answer; a; cells += 8 * (int64_t)dp_agg_own_words(a), a = a->next, i++) {
		dp_asm_mov_load(&s->a, 8, dp_agg_word(s, i), DP_RAX);
		dp_agg_apply(&s->a, s->rt, a, cells, how == DP_AGG_ALONE ? DP_AGG_OWN : how);
	}
}

void dp_agg_answer(struct dp_agg_stub *s, bool locked)
{
	struct dp_label shared = dp_asm_label(&s->a);
	if (!s->keyed) {
		add(s, s->cells, locked ? DP_AGG_LOCKED : DP_AGG_ALONE);
		return;
	}
	if (s->stacked)
		emit_stacked(s);
	else
		emit_keyed(s);
	dp_asm_jcc(&s->a, DP_CC_NE, shared);
	add(s, 0, DP_AGG_OWN);
	dp_asm_jmp(&s->a, s->restore);
	dp_asm_bind(&s->a, shared);
	add(s, 0, DP_AGG_LOCKED);
}
