/* SPDX-License-Identifier: MIT */
#ifndef DP_TRAMPOLINE_ARCH_X86_64_WINDOW_H
#define DP_TRAMPOLINE_ARCH_X86_64_WINDOW_H

#include "trampoline/arch/x86_64/tactics.h"

/* Fills instructions and interior of `ret` for a 5-byte jump over several instructions; refuses where that is not proved safe. */
struct dp_error *dp_window_fit(struct dp_known *known, const struct dp_text *text, const struct dp_insn *first,
                               struct dp_fit *ret) DP_MUST_CHECK;

#endif
