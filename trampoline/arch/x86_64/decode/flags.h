/* SPDX-License-Identifier: MIT */
/* Whether the program reads its arithmetic flags before it writes them. */
#ifndef DP_TRAMPOLINE_ARCH_X86_64_DECODE_FLAGS_H
#define DP_TRAMPOLINE_ARCH_X86_64_DECODE_FLAGS_H

#include "trampoline/trampoline.h"

/*
 * True if on every path from `addr`, CF, PF, AF, ZF, SF and OF are all written before an instruction reads them: then the program
 * does not depend on their values at `addr`. Uses only the code itself and no calling convention: the code after a return or an
 * indirect jump is unknown, and the result is false.
 */
bool dp_flags_dead(const struct dp_text *text, uint64_t addr);
/* Whether the stub of a request may change the flags. Not if its own or other probes of the run show them. */
bool dp_flags_free(const struct dp_runtime *rt, const struct dp_request *req);

#endif
