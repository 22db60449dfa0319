/* SPDX-License-Identifier: MIT */
/* Does the program look at its arithmetic flags before it writes them? */
#ifndef DP_TRAMPOLINE_X86_64_FLAGS_H
#define DP_TRAMPOLINE_X86_64_FLAGS_H

#include "trampoline/trampoline.h"

/*
 * True if on every way from `addr` on, CF, PF, AF, ZF, SF and OF are all written before an instruction looks at them: then
 * nothing the program does depends on what they are at `addr`. Only what the code itself shows counts, no calling convention:
 * behind a return or an indirect jump nothing is known, and false is the answer.
 */
bool dp_flags_dead(const struct dp_text *text, uint64_t addr);
/* The same for a request: may its stub change them? Not where they are asked for, by itself or by others of the run. */
bool dp_flags_free(const struct dp_runtime *rt, const struct dp_request *req);

#endif
