/* SPDX-License-Identifier: MIT */
/* Does a jump leave its function? What depends on the architecture is in arch/x86_64/leave.c. */
#ifndef DP_TRAMPOLINE_RETURNS_H
#define DP_TRAMPOLINE_RETURNS_H

#include "trampoline/arch/x86_64/decode/decode.h"
#include "trampoline/code/text.h"

struct dp_parts { /* of one function */
	const struct dp_text *text;
	const struct dp_range *part;
	size_t n;
};
bool dp_parts_hold(const struct dp_parts *parts, uint64_t addr);

struct dp_function_code {
	const struct dp_parts *parts;
	const struct dp_start *insn; /* ascending */
	size_t n;
	bool looked,
	        labels; /* labels: something names an address inside the function, other than its branches and relative tables */
	bool tables;    /* tables of offsets that lead into it */
};

enum dp_leave { DP_LEAVE_NO, DP_LEAVE_YES, DP_LEAVE_UNSURE };
/* Of the indirect jump insn[i]. */
enum dp_leave dp_indirect_leaves(struct dp_function_code *code, size_t i);
/* Has the frame been given back just before insn[i]? */
bool dp_after_epilogue(const struct dp_function_code *code, size_t i);
/* When a conditional jump is taken, in the terms of probes/. */
const char *dp_jcc_condition(const struct dp_insn *insn);

#endif
