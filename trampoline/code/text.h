/* SPDX-License-Identifier: MIT */
/* Looks up a module's bytes by target address. */
#ifndef DP_TRAMPOLINE_CODE_TEXT_H
#define DP_TRAMPOLINE_CODE_TEXT_H

#include "trampoline/trampoline.h"

/* The code bytes at `addr` up to the end of their executable segment; NULL if there are none. */
const uint8_t *dp_text_at(const struct dp_text *text, uint64_t addr, size_t *n);
/* Lowest and highest address of the module's segments. */
void dp_text_bounds(const struct dp_text *text, uint64_t *start, uint64_t *end);

/* Address of the module's .eh_frame_hdr, by its program headers; an empty range if it has none. */
void dp_text_unwind_index(const struct dp_text *text, uint64_t *start, uint64_t *end);

/*
 * The function around `addr`, by the module's unwind index. False if there is none; ret->start is then the next one's start, 0 if
 * unknown.
 */
bool dp_text_function(const struct dp_text *text, uint64_t addr, struct dp_range *ret);

#endif
