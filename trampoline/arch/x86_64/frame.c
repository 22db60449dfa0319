/* SPDX-License-Identifier: MIT */
#include "trampoline/arch/x86_64/frame.h"

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

static const uint8_t taken[] = {DP_RAX, DP_RCX, DP_RDX, DP_RSI}; /* rax: the flags */

void dp_frame_save(struct dp_asm *a, enum dp_frame_room room)
{
	if (room)
		dp_asm_lea(a, dp_rm_mem(DP_RSP, -8 * (int64_t)room), DP_RSP);
	for (size_t i = 0; i < sizeof(taken); i++)
		dp_asm_push(a, taken[i]);
}

void dp_frame_restore(struct dp_asm *a, enum dp_frame_room room)
{
	for (size_t i = sizeof(taken); i > 0; i--)
		dp_asm_pop(a, taken[i - 1]);
	if (room)
		dp_asm_lea(a, dp_rm_mem(DP_RSP, 8 * (int64_t)room), DP_RSP);
}

struct dp_view dp_frame_view(uint64_t rip, enum dp_frame_room room)
{
	struct dp_view v = dp_view_full(rip);
	if (!room)
		return v;
	v.duration = 8 * (int32_t)(sizeof(taken));
	v.rsp += 8 * (int32_t)room;
	v.disp[DP_RAX] += 8 * (int32_t)room;
	return v;
}
