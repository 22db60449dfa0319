/* SPDX-License-Identifier: MIT */
/*
 * rbx, which C code preserves, points to the stub's frame. The flags are saved with pushfq and popfq, because the program's
 * direction flag must be restored too; a hook runs rarely enough for that.
 */
#include "trampoline/arch/x86_64/hooks/hook.h"

static const uint8_t clobbered[] = {DP_RDI, DP_R8, DP_R9, DP_R10, DP_R11};
enum { BELOW_RBX = 8 * (sizeof(clobbered) + 1) }; /* the registers, and the flags */

void dp_hook_call(struct dp_asm *a, uint64_t target)
{
	dp_asm_push(a, DP_RBX);
	dp_asm_mov_store(a, 8, DP_RSP, dp_rm_reg(DP_RBX));
	for (size_t i = 0; i < sizeof(clobbered); i++)
		dp_asm_push(a, clobbered[i]);
	dp_asm_pushfq(a);
	dp_asm_alu_imm(a, DP_ALU_AND, 8, -16, dp_rm_reg(DP_RSP));
	dp_asm_cld(a);
	dp_asm_call(a, target, DP_RAX);
	dp_asm_lea(a, dp_rm_mem(DP_RBX, -BELOW_RBX), DP_RSP);
	dp_asm_popfq(a);
	for (size_t i = sizeof(clobbered); i > 0; i--)
		dp_asm_pop(a, clobbered[i - 1]);
	dp_asm_pop(a, DP_RBX);
}
