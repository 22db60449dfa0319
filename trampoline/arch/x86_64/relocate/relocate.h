/* SPDX-License-Identifier: MIT */
/* Moves instructions to another address, with identical effect there. */
#ifndef DP_TRAMPOLINE_ARCH_X86_64_RELOCATE_H
#define DP_TRAMPOLINE_ARCH_X86_64_RELOCATE_H

#include "base/buf.h"
#include "trampoline/arch/x86_64/decode/decode.h"
#include "trampoline/trampoline.h"

/*
 * Appends the form of `insn` that does at address `to` (where the next byte of `out` will lie) what it does at insn->addr. Where
 * it goes on to the following instruction, the result goes on behind its own bytes; everything else (branch targets, the return
 * address of a call) leads to the original addresses. DP_TAG_UNRELOCATABLE if there is no such form.
 */
struct dp_error *dp_relocate(const struct dp_insn *insn, uint64_t to, struct dp_buf *out) DP_MUST_CHECK;
/* Does the relocated form go on behind its bytes? Not for calls: they return to the original code. */
bool dp_relocated_continues(const struct dp_insn *insn);
/*
 * A run of adjacent instructions, then the jump back behind the last one (if it goes on). out->data[0] will lie at `base`. Adds
 * to plan->pair where each relocated instruction stands for its original.
 */
struct dp_error *dp_relocate_run(const struct dp_insn *insn, size_t n, uint64_t base, struct dp_buf *out,
                                 struct dp_plan *plan) DP_MUST_CHECK;
void dp_plan_pair(struct dp_plan *plan, uint64_t stub, uint64_t original, bool fix_rcx);

#endif
