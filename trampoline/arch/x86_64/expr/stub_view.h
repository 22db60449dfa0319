/* SPDX-License-Identifier: MIT */
/*
 * The location of the site's registers while a stub runs: live, or in memory because the stub uses the register. Condition and
 * capture code use it, so that the same code works at every stage of the stub.
 */
#ifndef DP_TRAMPOLINE_ARCH_X86_64_EXPR_STUB_VIEW_H
#define DP_TRAMPOLINE_ARCH_X86_64_EXPR_STUB_VIEW_H

#include "trampoline/arch/x86_64/asm/asm.h"

struct dp_view {
	uint8_t base;   /* register that `disp` is relative to */
	uint8_t pushed; /* bytes pushed since then, if base is rsp */
	uint16_t saved; /* bit r: register r is in memory at disp[r] */
	int32_t disp[16];
	int32_t rsp;   /* the site's rsp is base + rsp */
	int32_t flags; /* result of lahf and seto, as one word: OF in byte 0, the low byte of rflags in byte 1 */
	uint64_t rip;
	int32_t duration; /* a word: ns since the call's entry (pair.h); 0: unknown */
	int32_t call;     /* a word: the call's number (pair.h); 0: unknown */
	int32_t hits;     /* a word: the number of this hit (frame.h); 0: unknown */
};

/* What the stub has pushed: rax, then up to `level`: the flags (until then in rax), rcx, rdx, rsi. Pushed registers are free. */
enum dp_view_level { DP_VIEW_LIGHT, DP_VIEW_RAX, DP_VIEW_RCX, DP_VIEW_RDX, DP_VIEW_FULL };
struct dp_view dp_view_at(enum dp_view_level level, uint64_t rip);
struct dp_view dp_view_light(uint64_t rip);
/* Nothing pushed or saved: for light conditions if the flags are free. */
struct dp_view dp_view_bare(uint64_t rip);
struct dp_view dp_view_full(uint64_t rip);
#define DP_VIEW_RED_ZONE   128
#define DP_VIEW_FULL_BYTES 40 /* on the stack, without the red zone */

bool dp_view_is_saved(const struct dp_view *v, unsigned reg);
/* Operand for `shift` / 8 bytes into register `reg`, not rsp. */
struct dp_rm dp_view_operand(const struct dp_view *v, unsigned reg, unsigned shift);
/* Loads the part into `to` (below r8), zero-extended; flags change. */
void dp_view_load(struct dp_asm *a, const struct dp_view *v, unsigned reg, unsigned shift, unsigned size, unsigned to);
/* Loads rflags as they were at the site into rax; changes rdx and flags. */
void dp_view_load_rflags(struct dp_asm *a, const struct dp_view *v);

#endif
