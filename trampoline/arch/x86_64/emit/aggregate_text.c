/* SPDX-License-Identifier: MIT */
/*
 * Keys that are strings: the stub gives the agent addresses and lengths, and the agent copies the bytes (agent/abi.h). An address
 * that cannot be computed is one that is never mapped: the key is then "unreadable", as the field of a record would be.
 */
#include "trampoline/arch/x86_64/emit/aggregate_stub.h"

bool dp_agg_has_texts(const struct dp_agg *answer)
{
	for (unsigned i = 0; i < answer->nkeys; i++)
		if (answer->text[i].size)
			return true;
	return false;
}

unsigned dp_agg_counts(const struct dp_agg *answer, unsigned keys)
{
	unsigned n = 0;
	for (unsigned i = 0; i < keys; i++)
		n += answer->text[i].count != NULL;
	return n;
}

/* The number of the word with the length of key `i`, behind the values. */
static unsigned count_word(const struct dp_agg *answer, unsigned i)
{
	return answer->nkeys + 1 + dp_agg_counts(answer, i);
}

/* The same exits serve the address and the length. */
void dp_agg_text_init(struct dp_agg_stub *s)
{
	const struct dp_agg *answer = s->req->answer;
	for (unsigned i = 0; answer && i < answer->nkeys; i++) {
		struct dp_exits more = {0};
		if (!answer->text[i].size)
			continue;
		dp_exits_init(&s->a, answer->key[i], &s->text[i]);
		if (answer->text[i].count)
			dp_exits_init(&s->a, answer->text[i].count, &more);
		s->text[i] = more.n > s->text[i].n ? more : s->text[i];
		s->text_back[i] = dp_asm_label(&s->a);
	}
}

static enum dp_count kind_of(const struct dp_agg_text *t)
{
	if (!t->count)
		return t->is_array ? DP_COUNT_ARRAY : DP_COUNT_NONE;
	return t->count_is_signed ? DP_COUNT_SIGNED : DP_COUNT_UNSIGNED;
}

void dp_agg_text_ops(struct dp_agg_stub *s)
{
	const struct dp_agg *answer = s->req->answer;
	for (unsigned i = 0; i < answer->nkeys; i++) {
		const struct dp_agg_text *t = &answer->text[i];
		const struct dp_op op = {.addr = t->count ? count_word(answer, i) : 0,
		                         .size = t->size,
		                         .field = (uint16_t)(i + 1),
		                         .count = (uint16_t)kind_of(t)};
		if (t->size)
			dp_asm_data(&s->a, &op, sizeof(op));
	}
	dp_asm_data(&s->a, &(struct dp_op){0}, sizeof(struct dp_op));
}

static void compute(struct dp_agg_stub *s, unsigned i, const struct dp_expr *e)
{
	struct dp_expr_code c = {.a = &s->a, .rt = s->rt, .exits = s->text[i], .view = s->view};
	dp_expr_value(&c, e);
}

void dp_agg_text_load(struct dp_agg_stub *s, unsigned i)
{
	const struct dp_agg *answer = s->req->answer;
	if (answer->text[i].count) {
		compute(s, i, answer->text[i].count);
		dp_asm_mov_store(&s->a, 8, DP_RAX, dp_agg_word(s, count_word(answer, i)));
	}
	compute(s, i, answer->key[i]);
	dp_asm_bind(&s->a, s->text_back[i]);
}

/* With a length for which the address is read. */
void dp_agg_text_aside(struct dp_agg_stub *s)
{
	const struct dp_agg *answer = s->req->answer;
	for (unsigned i = 0; answer && i < answer->nkeys; i++) {
		if (!s->text[i].n)
			continue;
		dp_exits_put(&s->a, &s->text[i]);
		dp_asm_mov_const(&s->a, UINT64_C(1) << 62, DP_RAX);
		if (answer->text[i].count)
			dp_asm_mov_store(&s->a, 8, DP_RAX, dp_agg_word(s, count_word(answer, i)));
		dp_asm_shift(&s->a, DP_SHIFT_SHL, 1, DP_RAX);
		dp_asm_jmp(&s->a, s->text_back[i]);
	}
}
