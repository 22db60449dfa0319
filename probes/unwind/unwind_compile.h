/* SPDX-License-Identifier: MIT */
/* Unwind tables for the agent. */
#ifndef DP_PROBES_UNWIND_UNWIND_COMPILE_H
#define DP_PROBES_UNWIND_UNWIND_COMPILE_H

#include "probes/image/image.h"

/*
 * Analyses a function's stack use if no unwind table describes it. Follows code[0..n) from its first instruction, where the
 * return address is at rsp, and calls `each` for ascending offsets with the rule that applies from there on.
 */
struct dp_unwind_row;
typedef void (*dp_unwind_each)(uint32_t offset, const struct dp_unwind_row *row, void *data);
typedef void (*dp_unwind_follow)(const uint8_t *code, size_t n, dp_unwind_each each, void *data);

/*
 * Compiles the .eh_frame of every module into the tables of agent/unwind/unwind.h, with absolute target addresses, so that the
 * agent unwinds without parsing. The result is one position-independent block (offsets inside), to be mapped read-only. Functions
 * that have a symbol but no table go to `follow`, unless it is NULL. In code without rows the agent follows frame pointers.
 * `cache_dir` (or NULL) caches each module's compiled rows by build-id; always use it with the same `follow`.
 */
struct dp_error *dp_unwind_compile(struct dp_image *image, const char *cache_dir, dp_unwind_follow follow, uint8_t **ret, size_t *size) DP_MUST_CHECK;

#endif
