/* SPDX-License-Identifier: MIT */
/*
 * Every place of a module's code whose address is written anywhere in its file, in any of the ways in which x86-64 code and data
 * write addresses (lesson: window_proof.c). Found in one pass, a bit per byte of code and kind.
 */
#ifndef DP_TRAMPOLINE_ARCH_X86_64_LANDINGS_H
#define DP_TRAMPOLINE_ARCH_X86_64_LANDINGS_H

#include "trampoline/trampoline.h"

enum dp_landing {
	DP_LANDING_NONE,
	DP_LANDING_BRANCH,  /* rel32, or a RIP-relative operand */
	DP_LANDING_POINTER, /* absolute, or counted from its own address */
	DP_LANDING_TABLE,   /* an entry of a jump table */
	DP_LANDING_LEA,     /* a lea's operand itself */
	DP_LANDING_KINDS,
};

struct dp_landings;
/* NULL when out of memory. The text's segments must not change; its function does not matter. */
struct dp_landings *dp_landings_create(const struct dp_text *text);
struct dp_landings *dp_landings_destroy(struct dp_landings *landings);
/* What may lead to `addr`; leas of labels are asked for apart. */
enum dp_landing dp_landings_at(const struct dp_landings *landings, uint64_t addr);
/* Does a lea name a place in [start, end)? */
bool dp_landings_lea_in(const struct dp_landings *landings, uint64_t start, uint64_t end);

#endif
