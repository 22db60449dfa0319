/* SPDX-License-Identifier: MIT */
/* A plain C call from a stub that has saved rax, rcx, rdx, rsi and the arithmetic flags. */
#ifndef DP_TRAMPOLINE_ARCH_X86_64_HOOKS_HOOK_H
#define DP_TRAMPOLINE_ARCH_X86_64_HOOKS_HOOK_H

#include "trampoline/arch/x86_64/asm/asm.h"

/*
 * Calls `target` by the C ABI: aligned stack, direction flag clear. Preserves every register and flag but those that the stub has
 * saved; the callee preserves vector, x87 and MXCSR state.
 */
void dp_hook_call(struct dp_asm *a, uint64_t target);

#endif
