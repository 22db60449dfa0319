/* SPDX-License-Identifier: MIT */
/* Instructions as people read them. */
#ifndef DP_TRAMPOLINE_DISASSEMBLE_H
#define DP_TRAMPOLINE_DISASSEMBLE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Length of the instruction at bytes[0..n), which are to be shown as if they stood at `addr`, and its text in AT&T syntax. 0 if
 * there is none that is known; the text is "(bad)" then.
 */
size_t dp_disassemble(const uint8_t *bytes, size_t n, uint64_t addr, char *text, size_t size);

#endif
