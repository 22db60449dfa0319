/* SPDX-License-Identifier: MIT */
#ifndef DP_TRAMPOLINE_ARCH_X86_64_TACTICS_WINDOW_PROOF_H
#define DP_TRAMPOLINE_ARCH_X86_64_TACTICS_WINDOW_PROOF_H

#include "trampoline/arch/x86_64/decode/branch_targets.h"

/*
 * Proves that nothing in the module leads to one of the addresses site + interior[i]. Otherwise DP_TAG_TOO_SHORT names what does.
 */
struct dp_error *dp_window_prove(const struct dp_text *text, const struct dp_branch_targets *landings, uint64_t site,
                                 const uint8_t *interior, size_t n) DP_MUST_CHECK;

#endif
