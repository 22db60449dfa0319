/* SPDX-License-Identifier: MIT */
/*
 * Call frames of a stopped thread: the rule that call frame information has for a pc, and the step by it from a frame's registers
 * to its caller's. Guesses nothing: code without a table has no rule. A rule is valid as long as its table.
 */
#ifndef DP_PROBES_FRAME_FRAME_H
#define DP_PROBES_FRAME_FRAME_H

#include "base/addr.h"

#include <elfutils/libdw.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

/* Registers are numbered as in DWARF for x86-64: rax rdx rcx rbx rsi rdi rbp rsp r8..r15, then rip. */
#define DP_DWARF_REGS 17u
#define DP_FRAME_PC   16u
#define DP_FRAME_RSP  7u
#define DP_FRAME_RBP  6u
struct dp_frame_regs {
	uint64_t value[DP_DWARF_REGS];
	uint32_t known; /* bit i: value[i] is known */
};
struct dp_frame_regs dp_frame_regs_of(const struct user_regs_struct *r);

struct dp_frame_memory { /* the thread's memory; `get` reads all n bytes or returns false */
	bool (*get)(void *data, uint64_t addr, void *buf, size_t n);
	void *data;
};

enum dp_freg_kind { DP_FREG_LOST, DP_FREG_REG, DP_FREG_CFA, DP_FREG_EXPR };
struct dp_freg { /* what a register of the caller is: a register, the CFA or an expression's value, plus off */
	uint8_t kind, reg;
	bool in_memory; /* it is not this, but the word at this address */
	int64_t off;
	const Dwarf_Op *ops;
	size_t n;
};
struct dp_frule {
	bool is_known, is_signal, is_end; /* is_signal: of the kernel's signal frame; is_end: there is no caller */
	struct dp_freg cfa;
	struct dp_freg reg[DP_DWARF_REGS];
};

/* The rule of `cfi` (or NULL) for `pc`, an address in its file. Returns ret->is_known. */
bool dp_frule_find(Dwarf_CFI *cfi, uint64_t pc, struct dp_frule *ret);
struct dp_module;
/* The same from the .eh_frame of a mapped file, and for an address in the target. Reads only what is mapped. */
bool dp_frule_of_module(struct dp_module *m, dp_addr pc, struct dp_frule *ret);

/* The canonical frame address (CFA); 0 if unknown. */
uint64_t dp_frule_cfa(const struct dp_frule *rule, const struct dp_frame_regs *regs, const struct dp_frame_memory *memory);
/* The caller's registers. False if its pc is unknown. */
bool dp_frule_step(const struct dp_frule *rule, const struct dp_frame_regs *regs, uint64_t cfa,
                   const struct dp_frame_memory *memory, struct dp_frame_regs *ret);

#endif
