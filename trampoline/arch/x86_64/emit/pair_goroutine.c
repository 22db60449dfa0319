/* SPDX-License-Identifier: MIT */
/*
 * Calls that goroutines make: a goroutine continues on other threads, and on another stack when its own was full. What stays is
 * its descriptor (runtime.g) and the distance of the call's return address from the end of the stack: when the runtime moves a
 * stack it keeps that distance. Both are in memory that each thread reaches by fs (go/src/cmd/internal/obj/x86: TLS;
 * runtime/runtime2.go):
 *
 *     %fs:-8        the current goroutine's descriptor; 0 in threads that Go does not know
 *     g, g+8        its stack: start, end
 *
 * One table for all threads, at the place of all blocks' calls (decision 0047). Its index is a hash of goroutine, distance and
 * function, so two calls may meet at one place: the later one wins, and the return of the other is counted as unpaired. Threads
 * write without locks. An entry is { identity xor time, time }: half of one call and half of another match no identity, like an
 * entry overwritten while it is read.
 */
#include "trampoline/arch/x86_64/emit/pair.h"

#define G_AT      ((uint32_t)-8)
#define STACK_END 8
#define MIX       ((int32_t)0x85ebca6b) /* odd: each descriptor has another product */
#define BITS_MOST 24u

static uint64_t table(const struct dp_runtime *rt)
{
	return rt->answers.head + DP_AGGS_HEAD + rt->answers.pairs;
}

/* The number of entries is a power of two. */
static unsigned bits(const struct dp_runtime *rt)
{
	const uint64_t n = (rt->answers.nblocks - 1) * rt->answers.size / sizeof(struct dp_agg_pair) + DP_AGG_PAIRS;
	unsigned b = 1;
	while (b < BITS_MOST && UINT64_C(2) << b <= n)
		b++;
	return b;
}

struct dp_error *dp_pair_goroutine_check(const struct dp_runtime *rt)
{
	if (rt->identity == DP_ID_SELF || rt->bases)
		return NULL;
	return dp_error(DP_TAG_NO_VALUE,
	                "Go calls have a duration only where all threads have a base of fs, and programs may read it (rdfsbase)");
}

/* The goroutine into rdx; to `none` if there is none. A static program's first thread has no base of fs at first. */
static void emit_goroutine(struct dp_asm *a, const struct dp_runtime *rt, struct dp_label none)
{
	static const uint8_t rdfsbase_rdx[] = {0xf3, 0x48, 0x0f, 0xae, 0xc2};
	if (rt->bases) {
		dp_asm_data(a, rdfsbase_rdx, sizeof(rdfsbase_rdx));
		dp_asm_test(a, 8, DP_RDX, dp_rm_reg(DP_RDX));
		dp_asm_jcc(a, DP_CC_E, none);
	}
	dp_asm_mov_load(a, 8, dp_rm_fs(G_AT), DP_RDX);
	dp_asm_test(a, 8, DP_RDX, dp_rm_reg(DP_RDX));
	dp_asm_jcc(a, DP_CC_E, none);
}

/* The call's identity into rcx, its entry's address into rdx. */
static void emit_call(struct dp_asm *a, const struct dp_view *view, const struct dp_runtime *rt, uint16_t pair)
{
	dp_view_load(a, view, DP_RSP, 0, 8, DP_RCX);
	dp_asm_alu_load(a, DP_ALU_SUB, 8, dp_rm_mem(DP_RDX, STACK_END), DP_RCX);
	dp_asm_shift(a, DP_SHIFT_SHL, 16, DP_RCX);
	dp_asm_alu_imm(a, DP_ALU_OR, 8, pair, dp_rm_reg(DP_RCX));
	dp_asm_imul_imm(a, MIX, dp_rm_reg(DP_RDX), DP_RDX);
	dp_asm_alu_store(a, DP_ALU_ADD, 8, DP_RDX, dp_rm_reg(DP_RCX));
	dp_asm_imul_imm(a, (int32_t)DP_HASH_MULT, dp_rm_reg(DP_RCX), DP_RDX);
	dp_asm_shift(a, DP_SHIFT_SHR, 64 - bits(rt), DP_RDX);
	dp_asm_shift(a, DP_SHIFT_SHL, 4, DP_RDX);
	dp_asm_push(a, DP_RAX);
	dp_asm_mov_const(a, table(rt), DP_RAX);
	dp_asm_alu_store(a, DP_ALU_ADD, 8, DP_RAX, dp_rm_reg(DP_RDX));
	dp_asm_pop(a, DP_RAX);
}

void dp_pair_goroutine_enter(struct dp_asm *a, const struct dp_view *view, const struct dp_runtime *rt, uint16_t pair)
{
	struct dp_label none = dp_asm_label(a);
	dp_asm_mov_const(a, 0, DP_RCX);
	dp_pair_number(a, view);
	emit_goroutine(a, rt, none);
	emit_call(a, view, rt, pair);
	dp_asm_mov_store(a, 8, DP_RDX, dp_rm_reg(DP_RSI));
	dp_pair_now(a);
	dp_asm_mov_store(a, 8, DP_RAX, dp_rm_mem(DP_RSI, offsetof(struct dp_agg_pair, tsc)));
	dp_asm_alu_store(a, DP_ALU_XOR, 8, DP_RAX, dp_rm_reg(DP_RCX));
	dp_asm_mov_store(a, 8, DP_RCX, dp_rm_mem(DP_RSI, offsetof(struct dp_agg_pair, call)));
	dp_pair_number(a, view);
	dp_asm_bind(a, none);
}

void dp_pair_goroutine_leave(struct dp_asm *a, const struct dp_view *view, const struct dp_runtime *rt, uint16_t pair,
                             struct dp_label unpaired)
{
	const struct dp_rm call = dp_rm_mem(DP_RDX, offsetof(struct dp_agg_pair, call));
	const struct dp_rm tsc = dp_rm_mem(DP_RDX, offsetof(struct dp_agg_pair, tsc));
	emit_goroutine(a, rt, unpaired);
	emit_call(a, view, rt, pair);
	dp_asm_alu_load(a, DP_ALU_SUB, 8, tsc, DP_RAX);
	dp_asm_alu_load(a, DP_ALU_XOR, 8, tsc, DP_RCX);
	dp_asm_alu_load(a, DP_ALU_CMP, 8, call, DP_RCX);
	dp_asm_jcc(a, DP_CC_NE, unpaired);
	dp_pair_number(a, view);
	dp_asm_mov_const(a, 0, DP_RCX);
	dp_asm_mov_store(a, 8, DP_RCX, call);
	dp_pair_ns(a, view, rt);
}
