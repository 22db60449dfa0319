/* SPDX-License-Identifier: MIT */
/* Instructions as text. */
#ifndef DP_TRAMPOLINE_CODE_DISASSEMBLE_H
#define DP_TRAMPOLINE_CODE_DISASSEMBLE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Returns the length of the instruction at bytes[0..n), shown as if it were at `addr`, and its text in AT&T syntax. 0 if it is
 * unknown; the text is then "(bad)".
 */
size_t dp_disassemble(const uint8_t *bytes, size_t n, uint64_t addr, char *text, size_t size);

#endif
