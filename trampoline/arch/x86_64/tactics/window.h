/* SPDX-License-Identifier: MIT */
#ifndef DP_TRAMPOLINE_ARCH_X86_64_TACTICS_WINDOW_H
#define DP_TRAMPOLINE_ARCH_X86_64_TACTICS_WINDOW_H

#include "trampoline/arch/x86_64/tactics/tactics.h"

/*
 * Fills `ret` for a jump over several instructions, padding included, at most `most`; refuses if that is not proved safe. They
 * may have fewer bytes than a jump.
 */
struct dp_error *dp_window_fit(struct dp_analysis *known, const struct dp_text *text, const struct dp_insn *first, uint8_t most,
                               struct dp_fit *ret) DP_MUST_CHECK;

#endif
