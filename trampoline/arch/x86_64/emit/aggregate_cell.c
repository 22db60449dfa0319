/* SPDX-License-Identifier: MIT */
/*
 * Adds a hit to its cells. Each cell is changed by one instruction, or by cmpxchg: a signal handler's hit comes before or after
 * it. With a lock prefix the same code works for shared cells.
 *
 * A duration's bucket is known only when the clock has been read, and processors exist on which rdtsc waits until all earlier
 * stores know where they go: the next hit's then waits for this hit's duration. So the hit only notes its bucket, at an address
 * that is known early, and adds the hit before it to its own. Whoever reads the cells adds the last one.
 */
#include "trampoline/arch/x86_64/emit/aggregate.h"

unsigned dp_agg_words(const struct dp_agg *answer)
{
	unsigned words = 0;
	for (; answer; answer = answer->next)
		words += dp_agg_own_words(answer);
	return words;
}

unsigned dp_agg_own_words(const struct dp_agg *answer)
{
	if (answer->what & DP_AGG_LOG2)
		return DP_AGG_LOG2_WORDS;
	if (answer->what & DP_AGG_LINEAR)
		return answer->buckets + 2;
	if (answer->what & DP_AGG_DECIMAL)
		return DP_AGG_DECIMAL_WORDS;
	return answer->what == DP_AGG_COUNT ? 1 : DP_AGG_WORDS;
}

int64_t dp_decimal_from(unsigned i)
{
	static const int64_t digit[] = {1, 2, 5};
	int64_t decade = 1;
	if (!i)
		return 0;
	for (unsigned k = 3; k < i; k += 3)
		decade *= 10;
	return digit[(i - 1) % 3] * decade;
}

unsigned dp_decimal_bucket(int64_t value)
{
	if (value <= 0)
		return value ? DP_AGG_DECIMAL_WORDS - 1 : 0;
	/* 2^10 is somewhat more than nine steps. */
	unsigned i = (63 - (unsigned)__builtin_clzll((uint64_t)value)) * 9 / 10;
	while (i < DP_AGG_DECIMAL_WORDS - 2 && dp_decimal_from(i + 1) <= value)
		i++;
	return i;
}

unsigned dp_agg_pending(const struct dp_agg *answer)
{
	return answer->what & DP_AGG_HISTOGRAM && !answer->next ? 1 : 0;
}

static void lock(struct dp_asm *a, bool locked)
{
	if (locked)
		dp_asm_data(a, "\xf0", 1);
}

static void add_one(struct dp_asm *a, struct dp_rm cell, bool locked)
{
	lock(a, locked);
	dp_asm_alu_imm(a, DP_ALU_ADD, 8, 1, cell);
}

/* The bucket's index is in rcx. */
static void add_bucket(struct dp_asm *a, int64_t disp, bool locked)
{
	static const uint8_t addq_rsi_rcx_8[] = {0x48, 0x83, 0x84, 0xce}; /* addq $imm8,disp32(%rsi,%rcx,8) */
	lock(a, locked);
	dp_asm_data(a, addq_rsi_rcx_8, sizeof(addq_rsi_rcx_8));
	dp_asm_data(a, &disp, 4);
	dp_asm_data(a, "\x01", 1);
}

/* The bucket's index is in rcx. The bucket of the hit before it is added now; a handler's hit comes before or after the cmpxchg.
 */
static void note_bucket(struct dp_asm *a, const struct dp_agg *answer, int64_t disp)
{
	static const uint8_t addq_rsi_rax_8[] = {0x48, 0x83, 0x84, 0xc6}; /* addq $imm8,disp32(%rsi,%rax,8) */
	const struct dp_rm pending = dp_rm_mem(DP_RSI, disp + 8 * (int64_t)dp_agg_own_words(answer));
	struct dp_label again = dp_asm_label(a), none = dp_asm_label(a);
	const int64_t first = disp - 8;
	dp_asm_lea(a, dp_rm_mem(DP_RCX, 1), DP_RDX);
	dp_asm_mov_load(a, 8, pending, DP_RAX);
	dp_asm_bind(a, again);
	dp_asm_cmpxchg(a, DP_RDX, pending);
	dp_asm_jcc(a, DP_CC_NE, again);
	dp_asm_test(a, 8, DP_RAX, dp_rm_reg(DP_RAX));
	dp_asm_jcc(a, DP_CC_E, none);
	dp_asm_data(a, addq_rsi_rax_8, sizeof(addq_rsi_rax_8));
	dp_asm_data(a, &first, 4);
	dp_asm_data(a, "\x01", 1);
	dp_asm_bind(a, none);
}

/* The highest bit of 2 * value + 1 is the bucket's index, for 0 too. Values below 0 go to the last bucket. */
static void log2_bucket(struct dp_asm *a)
{
	static const uint8_t bsr_rcx_rcx[] = {0x48, 0x0f, 0xbd, 0xc9}, cmovs_rdx_rcx[] = {0x48, 0x0f, 0x48, 0xca};
	dp_asm_lea(a, dp_rm_index(DP_RAX, DP_RAX, 1), DP_RCX);
	dp_asm_data(a, bsr_rcx_rcx, sizeof(bsr_rcx_rcx));
	dp_asm_mov_const(a, DP_AGG_LOG2_WORDS - 1, DP_RDX);
	dp_asm_test(a, 8, DP_RAX, dp_rm_reg(DP_RAX));
	dp_asm_data(a, cmovs_rdx_rcx, sizeof(cmovs_rdx_rcx));
}

/* As struct dp_decimal says. */
static void decimal_bucket(struct dp_asm *a, uint64_t table)
{
	static const uint8_t or_1_rcx[] = {0x48, 0x83, 0xc9, 1}, bsr_rcx_rcx[] = {0x48, 0x0f, 0xbd, 0xc9},
	                     cmp_bound_rax[] = {0x48, 0x3b, 0x04, 0xca}, /* cmp (%rdx,%rcx,8),%rax */
	        below_ecx[] = {0x0f, 0xb6, 0x8c, 0x0a},                  /* movzbl disp32(%rdx,%rcx),%ecx */
	        sbb_rcx[] = {0x48, 0x83, 0xd9, 0xff};                    /* sbb $-1,%rcx */
	const uint32_t below = offsetof(struct dp_decimal, below);
	dp_asm_mov_const(a, table, DP_RDX);
	dp_asm_mov_store(a, 8, DP_RAX, dp_rm_reg(DP_RCX));
	dp_asm_data(a, or_1_rcx, sizeof(or_1_rcx));
	dp_asm_data(a, bsr_rcx_rcx, sizeof(bsr_rcx_rcx));
	dp_asm_data(a, cmp_bound_rax, sizeof(cmp_bound_rax));
	dp_asm_data(a, below_ecx, sizeof(below_ecx));
	dp_asm_data(a, &below, 4);
	dp_asm_data(a, sbb_rcx, sizeof(sbb_rcx));
}

/*
 * rax / step into rax, which is below `limit`. Multiplies by the rounded reciprocal, exact for 32 bits; only wider ranges need a
 * division.
 */
static void divide(struct dp_asm *a, uint64_t step, uint64_t limit)
{
	static const uint8_t mul_rcx[] = {0x48, 0xf7, 0xe1}, div_rcx[] = {0x48, 0xf7, 0xf1};
	const bool wide = limit > UINT32_MAX;
	if (step == 1)
		return;
	dp_asm_mov_const(a, wide ? step : UINT64_MAX / step + 1, DP_RCX);
	if (wide)
		dp_asm_mov_const(a, 0, DP_RDX);
	dp_asm_data(a, wide ? div_rcx : mul_rcx, 3);
	if (!wide)
		dp_asm_mov_store(a, 8, DP_RDX, dp_rm_reg(DP_RAX));
}

static void linear_bucket(struct dp_asm *a, const struct dp_agg *answer)
{
	const uint64_t limit = answer->buckets * answer->step;
	struct dp_label done = dp_asm_label(a), inside = dp_asm_label(a);
	dp_asm_mov_const(a, (uint64_t)answer->low, DP_RDX);
	dp_asm_mov_const(a, 0, DP_RCX);
	dp_asm_alu_store(a, DP_ALU_CMP, 8, DP_RDX, dp_rm_reg(DP_RAX));
	dp_asm_jcc(a, DP_CC_L, done);
	dp_asm_alu_store(a, DP_ALU_SUB, 8, DP_RDX, dp_rm_reg(DP_RAX));
	dp_asm_mov_const(a, limit, DP_RDX);
	dp_asm_alu_store(a, DP_ALU_CMP, 8, DP_RDX, dp_rm_reg(DP_RAX));
	dp_asm_jcc(a, DP_CC_B, inside);
	dp_asm_mov_const(a, answer->buckets + 1, DP_RCX);
	dp_asm_jmp(a, done);
	dp_asm_bind(a, inside);
	divide(a, answer->step, limit);
	dp_asm_lea(a, dp_rm_mem(DP_RAX, 1), DP_RCX);
	dp_asm_bind(a, done);
}

/* Stores the maximum of the cell and rdx in the cell. */
static void greatest(struct dp_asm *a, struct dp_rm cell, bool locked)
{
	struct dp_label again = dp_asm_label(a), done = dp_asm_label(a);
	dp_asm_bind(a, again);
	dp_asm_mov_load(a, 8, cell, DP_RAX);
	dp_asm_alu_store(a, DP_ALU_CMP, 8, DP_RDX, dp_rm_reg(DP_RAX));
	dp_asm_jcc(a, DP_CC_AE, done);
	lock(a, locked);
	dp_asm_cmpxchg(a, DP_RDX, cell);
	dp_asm_jcc(a, DP_CC_NE, again);
	dp_asm_bind(a, done);
}

static void statistics(struct dp_asm *a, const struct dp_agg *answer, int64_t disp, bool locked)
{
	static const uint8_t btc_63_rdx[] = {0x48, 0x0f, 0xba, 0xfa, 63}, not_rdx[] = {0x48, 0xf7, 0xd2};
	add_one(a, dp_rm_mem(DP_RSI, disp + 8 * DP_AGG_WORD_COUNT), locked);
	if (answer->what & DP_AGG_SUM) {
		lock(a, locked);
		dp_asm_alu_store(a, DP_ALU_ADD, 8, DP_RAX, dp_rm_mem(DP_RSI, disp + 8 * DP_AGG_WORD_SUM));
	}
	if (!(answer->what & (DP_AGG_MIN | DP_AGG_MAX)))
		return;
	dp_asm_mov_store(a, 8, DP_RAX, dp_rm_reg(DP_RDX));
	dp_asm_data(a, btc_63_rdx, sizeof(btc_63_rdx));
	if (answer->what & DP_AGG_MAX)
		greatest(a, dp_rm_mem(DP_RSI, disp + 8 * DP_AGG_WORD_MAX), locked);
	if (!(answer->what & DP_AGG_MIN))
		return;
	dp_asm_data(a, not_rdx, sizeof(not_rdx));
	greatest(a, dp_rm_mem(DP_RSI, disp + 8 * DP_AGG_WORD_MIN), locked);
}

/* Shared cells have many last hits, and cells of keys have no room for theirs. */
static bool is_late(const struct dp_agg *answer, enum dp_agg_how how)
{
	return how == DP_AGG_ALONE && !answer->by && !answer->stack && !answer->nkeys &&
	       dp_expr_asks_for(answer->value, DP_FACT_DURATION);
}

static void bucket(struct dp_asm *a, const struct dp_agg *answer, uint64_t decimal)
{
	if (answer->what & DP_AGG_LOG2)
		log2_bucket(a);
	else if (answer->what & DP_AGG_DECIMAL)
		decimal_bucket(a, decimal);
	else
		linear_bucket(a, answer);
}

void dp_agg_apply(struct dp_asm *a, const struct dp_runtime *rt, const struct dp_agg *answer, int64_t disp, enum dp_agg_how how)
{
	const bool locked = how == DP_AGG_LOCKED;
	if (answer->what & DP_AGG_HISTOGRAM) {
		bucket(a, answer, rt->decimal);
		if (is_late(answer, how))
			note_bucket(a, answer, disp);
		else
			add_bucket(a, disp, locked);
	} else if (answer->what == DP_AGG_COUNT) {
		add_one(a, dp_rm_mem(DP_RSI, disp), locked);
	} else {
		statistics(a, answer, disp, locked);
	}
}
