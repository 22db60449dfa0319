/* SPDX-License-Identifier: MIT */
/*
 * A call is identified by its thread, its function and the address of its return address: rsp at the entry, and again at every
 * ret and tail jump. Two unfinished calls never have the same one, however many stacks the thread has. So the entry's index is
 * derived from that address, and a match is exact: an entry abandoned by longjmp, an exception or a coroutine is overwritten by
 * the next call at that address, or at one 256 KiB further, and never matches another call.
 *
 * A signal handler's calls may overwrite the same entry between any two instructions here. So the entry code checks the time
 * again after it has written both words, and the return code reads the time before it checks the call.
 */
#include "trampoline/arch/x86_64/emit/pair.h"

#define PLACE ((int32_t)((DP_AGG_PAIRS - 1) << 4)) /* rsp & this is the entry's offset */

_Static_assert(sizeof(struct dp_agg_pair) == 16, "stack addresses differ by 16");

void dp_pair_now(struct dp_asm *a)
{
	dp_asm_rdtsc(a);
	dp_asm_shift(a, DP_SHIFT_SHL, 32, DP_RDX);
	dp_asm_alu_store(a, DP_ALU_OR, 8, DP_RDX, dp_rm_reg(DP_RAX));
}

/* Loads the call's identity into rcx, its entry's offset in the block's pairs into rdx. */
static void emit_call(struct dp_asm *a, const struct dp_view *view, uint16_t pair)
{
	dp_view_load(a, view, DP_RSP, 0, 8, DP_RCX);
	dp_asm_mov_store(a, 4, DP_RCX, dp_rm_reg(DP_RDX));
	dp_asm_alu_imm(a, DP_ALU_AND, 4, PLACE, dp_rm_reg(DP_RDX));
	dp_asm_shift(a, DP_SHIFT_SHL, 16, DP_RCX);
	dp_asm_alu_imm(a, DP_ALU_OR, 8, pair, dp_rm_reg(DP_RCX));
}

void dp_pair_enter(struct dp_asm *a, const struct dp_view *view, const struct dp_runtime *rt, const struct dp_request *req)
{
	const struct dp_rm call = dp_rm_mem(DP_RSI, offsetof(struct dp_agg_pair, call));
	const struct dp_rm tsc = dp_rm_mem(DP_RSI, offsetof(struct dp_agg_pair, tsc));
	struct dp_label again = dp_asm_label(a);
	if (req->goroutines) {
		dp_pair_goroutine_enter(a, view, rt, req->pair);
		return;
	}
	emit_call(a, view, req->pair);
	dp_asm_lea(a, dp_rm_index(DP_RSI, DP_RDX, rt->answers.pairs), DP_RSI);
	dp_asm_bind(a, again);
	dp_pair_now(a);
	dp_asm_mov_store(a, 8, DP_RAX, tsc);
	dp_asm_mov_store(a, 8, DP_RCX, call);
	dp_asm_alu_store(a, DP_ALU_CMP, 8, DP_RAX, tsc);
	dp_asm_jcc(a, DP_CC_NE, again);
	if (view->call)
		dp_asm_alu_store(a, DP_ALU_XOR, 8, DP_RAX, dp_rm_reg(DP_RCX));
	dp_pair_number(a, view);
}

void dp_pair_number(struct dp_asm *a, const struct dp_view *view)
{
	if (view->call)
		dp_asm_mov_store(a, 8, DP_RCX, dp_rm_mem(view->base, view->call + view->pushed));
}

void dp_pair_ns(struct dp_asm *a, const struct dp_view *view, const struct dp_runtime *rt)
{
	const uint64_t tick_ns = rt->tick_ns;
	static const uint8_t mul_rcx[] = {0x48, 0xf7, 0xe1}, shrd_32_rdx_rax[] = {0x48, 0x0f, 0xac, 0xd0, 32};
	const bool whole = tick_ns <= UINT32_MAX; /* less than 1 ns: the product's upper word is the result */
	dp_asm_mov_const(a, whole ? tick_ns << 32 : tick_ns, DP_RCX);
	dp_asm_data(a, mul_rcx, sizeof(mul_rcx));
	if (whole)
		dp_asm_mov_store(a, 8, DP_RDX, dp_rm_reg(DP_RAX));
	else
		dp_asm_data(a, shrd_32_rdx_rax, sizeof(shrd_32_rdx_rax));
	if (view->duration)
		dp_asm_mov_store(a, 8, DP_RAX, dp_rm_mem(view->base, view->duration + view->pushed));
}

void dp_pair_leave(struct dp_asm *a, const struct dp_view *view, const struct dp_runtime *rt, const struct dp_request *req,
                   struct dp_label unpaired)
{
	const int64_t pairs = rt->answers.pairs;
	const struct dp_rm kept = dp_rm_mem(view->base, view->duration + view->pushed);
	if (req->goroutines) {
		dp_pair_goroutine_leave(a, view, rt, req->pair, unpaired);
		return;
	}
	emit_call(a, view, req->pair);
	dp_asm_alu_store(a, DP_ALU_ADD, 8, DP_RSI, dp_rm_reg(DP_RDX));
	if (view->call)
		dp_asm_mov_store(a, 8, DP_RAX, kept);
	dp_asm_alu_load(a, DP_ALU_SUB, 8, dp_rm_mem(DP_RDX, pairs + (int64_t)offsetof(struct dp_agg_pair, tsc)), DP_RAX);
	dp_asm_alu_store(a, DP_ALU_CMP, 8, DP_RCX, dp_rm_mem(DP_RDX, pairs));
	dp_asm_jcc(a, DP_CC_NE, unpaired);
	if (view->call) { /* the time that was noted: now less what has passed */
		dp_asm_mov_load(a, 8, kept, DP_RSI);
		dp_asm_alu_store(a, DP_ALU_SUB, 8, DP_RAX, dp_rm_reg(DP_RSI));
		dp_asm_alu_store(a, DP_ALU_XOR, 8, DP_RSI, dp_rm_reg(DP_RCX));
	}
	dp_pair_number(a, view);
	dp_asm_mov_const(a, 0, DP_RCX);
	dp_asm_mov_store(a, 8, DP_RCX, dp_rm_mem(DP_RDX, pairs));
	dp_pair_ns(a, view, rt);
}
