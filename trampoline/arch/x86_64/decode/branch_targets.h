/* SPDX-License-Identifier: MIT */
/*
 * All addresses of a module's code that its file contains anywhere, in any of the forms in which x86-64 code and data contain
 * addresses (explained in window_proof.c). Found in one pass, a bit per byte of code and kind.
 */
#ifndef DP_TRAMPOLINE_ARCH_X86_64_DECODE_BRANCH_TARGETS_H
#define DP_TRAMPOLINE_ARCH_X86_64_DECODE_BRANCH_TARGETS_H

#include "trampoline/trampoline.h"

enum dp_landing {
	DP_BRANCH_TARGET_NONE,
	DP_BRANCH_TARGET_BRANCH,  /* rel32, or a RIP-relative operand */
	DP_BRANCH_TARGET_POINTER, /* absolute, or relative to its own address */
	DP_BRANCH_TARGET_TABLE,   /* an entry of a jump table */
	DP_BRANCH_TARGET_LEA,     /* a lea's operand itself */
	DP_BRANCH_TARGET_KINDS,
};

struct dp_branch_targets;
/* NULL when out of memory. The text's segments must not change; its function does not matter. */
struct dp_branch_targets *dp_branch_targets_create(const struct dp_text *text);
struct dp_branch_targets *dp_branch_targets_destroy(struct dp_branch_targets *landings);
/* What may lead to `addr`; leas of labels are queried separately. */
enum dp_landing dp_branch_targets_at(const struct dp_branch_targets *landings, uint64_t addr);
/* Whether a lea refers to an address in [start, end). */
bool dp_branch_targets_lea_in(const struct dp_branch_targets *landings, uint64_t start, uint64_t end);

#endif
