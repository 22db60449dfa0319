/* SPDX-License-Identifier: MIT */
#include "trampoline/arch/x86_64/expr/stub_view.h"

struct dp_view dp_view_at(enum dp_view_level level, uint64_t rip)
{
	static const uint8_t reg[] = {[DP_VIEW_RCX] = DP_RCX, [DP_VIEW_RDX] = DP_RDX, [DP_VIEW_FULL] = DP_RSI};
	const int32_t top = (int32_t)level;
	struct dp_view v = {.base = DP_RSP, .saved = 1u << DP_RAX, .rsp = 8 * (top + 1) + DP_VIEW_RED_ZONE, .rip = rip};
	v.disp[DP_RAX] = 8 * top;
	v.flags = level == DP_VIEW_LIGHT ? 0 : 8 * (top - DP_VIEW_RAX);
	for (int32_t i = DP_VIEW_RCX; i <= top; i++) {
		v.saved |= (uint16_t)(1u << reg[i]);
		v.disp[reg[i]] = 8 * (top - i);
	}
	return v;
}

struct dp_view dp_view_light(uint64_t rip)
{
	return dp_view_at(DP_VIEW_LIGHT, rip);
}

struct dp_view dp_view_bare(uint64_t rip)
{
	return (struct dp_view){.base = DP_RSP, .rip = rip};
}

struct dp_view dp_view_full(uint64_t rip)
{
	return dp_view_at(DP_VIEW_FULL, rip);
}

bool dp_view_is_saved(const struct dp_view *v, unsigned reg)
{
	return v->saved >> reg & 1;
}

struct dp_rm dp_view_operand(const struct dp_view *v, unsigned reg, unsigned shift)
{
	if (dp_view_is_saved(v, reg))
		return dp_rm_mem(v->base, v->disp[reg] + v->pushed + (int32_t)shift / 8);
	return shift ? dp_rm_high(reg) : dp_rm_reg(reg);
}

void dp_view_load(struct dp_asm *a, const struct dp_view *v, unsigned reg, unsigned shift, unsigned size, unsigned to)
{
	if (reg != DP_RSP) {
		dp_asm_mov_zx(a, size, dp_view_operand(v, reg, shift), to);
		return;
	}
	dp_asm_lea(a, dp_rm_mem(v->base, v->rsp + v->pushed), to);
	if (size < 8)
		dp_asm_mov_zx(a, size, dp_rm_reg(to), to);
}

/* pushfq still gives DF, IF and the rarer flags as at the site; the arithmetic flags come from those saved at the start. */
void dp_view_load_rflags(struct dp_asm *a, const struct dp_view *v)
{
	dp_asm_pushfq(a);
	dp_asm_pop(a, DP_RAX);
	dp_asm_alu_imm(a, DP_ALU_AND, 8, ~0x8ff, dp_rm_reg(DP_RAX));
	dp_asm_mov_zx(a, 1, dp_rm_mem(v->base, v->flags + v->pushed + 1), DP_RDX);
	dp_asm_alu_store(a, DP_ALU_OR, 8, DP_RDX, dp_rm_reg(DP_RAX));
	dp_asm_mov_zx(a, 1, dp_rm_mem(v->base, v->flags + v->pushed), DP_RDX);
	dp_asm_shift(a, DP_SHIFT_SHL, 11, DP_RDX);
	dp_asm_alu_store(a, DP_ALU_OR, 8, DP_RDX, dp_rm_reg(DP_RAX));
}
