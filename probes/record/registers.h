/* SPDX-License-Identifier: MIT */
/* Register names: lookups, and spelling help. */
#ifndef DP_PROBES_RECORD_REGISTERS_H
#define DP_PROBES_RECORD_REGISTERS_H

#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>

#define DP_REGISTERS 16u

/* Looks up a register name: general registers of every width ("eax", "r8b", "ah"). */
bool dp_register_find(const char *name, uint8_t *reg, uint8_t *shift, uint8_t *size);
/* The 64-bit name of general register `reg` (0-15 as in struct dp_regs). */
const char *dp_register_name(uint8_t reg);
/* True for xmm0 .. xmm15. */
bool dp_register_xmm(const char *name, uint8_t *reg);
bool dp_register_is_flags(const char *name);
/* Appends "did you mean rax, eax?", or a list of names if none is similar. `condition`: offers arg0-arg5 instead of xmm. */
void dp_register_suggest(const char *name, bool condition, struct dp_buf *out);

#endif
