/* SPDX-License-Identifier: MIT */
/* Moves instructions to another address, with identical effect there. */
#ifndef DP_TRAMPOLINE_ARCH_X86_64_RELOCATE_RELOCATE_H
#define DP_TRAMPOLINE_ARCH_X86_64_RELOCATE_RELOCATE_H

#include "base/buf.h"
#include "trampoline/arch/x86_64/decode/decode.h"
#include "trampoline/trampoline.h"

/*
 * Appends the form of `insn` that has the same effect at address `to` (of the next byte of `out`) as at insn->addr. If it
 * continues with the following instruction, the result continues after its own bytes; all other addresses (branch targets, the
 * return address of a call) are the original ones. DP_TAG_UNRELOCATABLE if there is no such form.
 */
struct dp_error *dp_relocate(const struct dp_insn *insn, uint64_t to, struct dp_buf *out) DP_MUST_CHECK;
/* Whether the relocated form continues after its bytes. Not for calls: they return to the original code. */
bool dp_relocated_continues(const struct dp_insn *insn);
/*
 * A run of adjacent instructions, then the jump back to after the last one (if that continues). out->data[0] is for address
 * `base`. Adds to plan->pair the relocated and the original address of each instruction.
 */
struct dp_error *dp_relocate_run(const struct dp_insn *insn, size_t n, uint64_t base, struct dp_buf *out,
                                 struct dp_plan *plan) DP_MUST_CHECK;
void dp_plan_pair(struct dp_plan *plan, uint64_t stub, uint64_t original, bool fix_rcx);

#endif
