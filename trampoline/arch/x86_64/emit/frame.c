/* SPDX-License-Identifier: MIT */
#include "trampoline/arch/x86_64/emit/frame.h"

void dp_frame_enter(struct dp_asm *a, bool flags)
{
	dp_asm_lea(a, dp_rm_mem(DP_RSP, -DP_VIEW_RED_ZONE), DP_RSP);
	dp_asm_push(a, DP_RAX);
	if (!flags)
		return;
	dp_asm_lahf(a);
	dp_asm_seto_al(a);
}

/* 0x7f + 1 overflows, 0x7f + 0 does not; sahf leaves OF alone. */
void dp_frame_leave(struct dp_asm *a, bool flags)
{
	if (flags) {
		dp_asm_add_al(a, 0x7f);
		dp_asm_sahf(a);
	}
	dp_asm_pop(a, DP_RAX);
	dp_asm_lea(a, dp_rm_mem(DP_RSP, DP_VIEW_RED_ZONE), DP_RSP);
}

void dp_frame_gates(struct dp_asm *a, const struct dp_request *req, struct dp_label leave)
{
	for (size_t i = 0; i < sizeof(req->gate) / sizeof(req->gate[0]); i++)
		if (req->gate[i]) {
			dp_asm_cmp_zero(a, req->gate[i], DP_RCX);
			dp_asm_jcc(a, DP_CC_E, leave);
		}
}

bool dp_frame_gates_near(const struct dp_asm *a, const struct dp_request *req)
{
	for (size_t i = 0; i < sizeof(req->gate) / sizeof(req->gate[0]); i++) {
		const int64_t distance = (int64_t)(req->gate[i] - a->at);
		if (req->gate[i] && (distance > INT32_MAX - (1 << 20) || distance < INT32_MIN + (1 << 20)))
			return false;
	}
	return true;
}

static const uint8_t taken[] = {DP_RAX, DP_RCX, DP_RDX, DP_RSI}; /* rax: contains the flags */

static int32_t words_of(unsigned room)
{
	return (int32_t)((room & (DP_FRAME_COUNTED - 1)) + (room >> 4) + (room & DP_FRAME_COUNTED ? 1 : 0));
}

int32_t dp_frame_words(unsigned room)
{
	return 8 * (int32_t)(sizeof(taken) + (room & (DP_FRAME_COUNTED - 1)));
}

void dp_frame_save(struct dp_asm *a, unsigned room)
{
	if (room)
		dp_asm_lea(a, dp_rm_mem(DP_RSP, -8 * words_of(room)), DP_RSP);
	for (size_t i = 0; i < sizeof(taken); i++)
		dp_asm_push(a, taken[i]);
}

void dp_frame_restore(struct dp_asm *a, unsigned room)
{
	for (size_t i = sizeof(taken); i > 0; i--)
		dp_asm_pop(a, taken[i - 1]);
	if (room)
		dp_asm_lea(a, dp_rm_mem(DP_RSP, 8 * words_of(room)), DP_RSP);
}

struct dp_view dp_frame_view(uint64_t rip, unsigned room)
{
	const int32_t saved = 8 * (int32_t)sizeof(taken), words = words_of(room);
	struct dp_view v = dp_view_full(rip);
	if (room & (DP_FRAME_COUNTED - 1))
		v.duration = saved;
	if ((room & (DP_FRAME_COUNTED - 1)) == DP_FRAME_CALLED)
		v.call = saved + 8;
	if (room & DP_FRAME_COUNTED)
		v.hits = saved + 8 * (words - 1);
	v.rsp += 8 * words;
	v.disp[DP_RAX] += 8 * words;
	return v;
}

void dp_frame_count(struct dp_asm *a, const struct dp_view *view, const struct dp_runtime *rt, uint64_t counter)
{
	static const uint8_t setne_al[] = {0x0f, 0x95, 0xc0}, lock_xadd_rax_rdx[] = {0xf0, 0x48, 0x0f, 0xc1, 0x02};
	dp_asm_mov_const(a, rt->follows ? 1 : 0, DP_RAX);
	if (!rt->follows) {
		dp_asm_mov_const(a, rt->agent + offsetof(struct dp_agent, live), DP_RDX);
		dp_asm_alu_imm(a, DP_ALU_CMP, 8, 0, dp_rm_mem(DP_RDX, 0));
		dp_asm_data(a, setne_al, sizeof(setne_al));
	}
	dp_asm_mov_store(a, 8, DP_RAX, dp_rm_reg(DP_RCX));
	dp_asm_mov_const(a, counter, DP_RDX);
	dp_asm_data(a, lock_xadd_rax_rdx, sizeof(lock_xadd_rax_rdx));
	dp_asm_alu_store(a, DP_ALU_ADD, 8, DP_RCX, dp_rm_reg(DP_RAX));
	dp_asm_mov_store(a, 8, DP_RAX, dp_rm_mem(view->base, view->hits + view->pushed));
	if (view->duration)
		dp_asm_mov_load(a, 8, dp_rm_mem(view->base, view->duration + view->pushed), DP_RAX);
}
