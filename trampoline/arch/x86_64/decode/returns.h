/* SPDX-License-Identifier: MIT */
/* Whether a jump leaves its function (leave.c). */
#ifndef DP_TRAMPOLINE_ARCH_X86_64_DECODE_RETURNS_H
#define DP_TRAMPOLINE_ARCH_X86_64_DECODE_RETURNS_H

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
	bool looked, labels; /* labels: an address inside the function is used other than by its branches and relative tables */
	bool tables;         /* tables of offsets that lead into it */
};

enum dp_leave { DP_LEAVE_NO, DP_LEAVE_YES, DP_LEAVE_UNSURE };
/* Classifies the indirect jump insn[i]. */
enum dp_leave dp_indirect_leaves(struct dp_function_code *code, size_t i);
/* Whether the frame was removed just before insn[i]. */
bool dp_after_epilogue(const struct dp_function_code *code, size_t i);
/* The condition of a conditional jump, in the language of probes/. */
const char *dp_jcc_condition(const struct dp_insn *insn);

#endif
