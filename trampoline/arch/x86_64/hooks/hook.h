/* SPDX-License-Identifier: MIT */
/* A plain C call from a stub that has saved rax, rcx, rdx, rsi and the arithmetic flags. */
#ifndef DP_TRAMPOLINE_X86_64_HOOK_H
#define DP_TRAMPOLINE_X86_64_HOOK_H

#include "trampoline/arch/x86_64/asm/asm.h"

/*
 * Calls `target` as the C ABI wants it: aligned stack, direction flag clear. Keeps every register and flag but those that the
 * stub has saved; vector, x87 and MXCSR state is the callee's to keep.
 */
void dp_hook_call(struct dp_asm *a, uint64_t target);

#endif
