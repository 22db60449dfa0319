/* SPDX-License-Identifier: MIT */
/* Why a thread faulted. */
#ifndef DP_PMODULES_FAULT_FAULT_H
#define DP_PMODULES_FAULT_FAULT_H

#include "pmodules/source/stopped.h"
#include "pmodules/value/debug_ctx_internal.h"

enum dp_branch { DP_BRANCH_NONE, DP_BRANCH_VALUE, DP_BRANCH_MEMORY };
struct dp_access { /* the memory access of an instruction */
	bool is_known, is_write;
	bool is_spread; /* several addresses, in a vector */
	bool divides;
	bool is_privileged; /* user programs may not execute it, or not always */
	bool is_cut;        /* the instruction is longer than the bytes given */
	unsigned size, align;
	uint64_t address;
	char reg[16]; /* the address comes from it, or ""; of a division: the divisor's */
	bool value_known;
	uint64_t value;        /* the divisor, if it is in a register */
	enum dp_branch branch; /* jumps to `target`, or to the address stored there */
	uint64_t target;
	char target_reg[16];
	char name[32]; /* mnemonic */
};
struct dp_access_ask {
	const uint8_t *bytes;
	size_t n;
	const struct user_regs_struct *regs;
	bool has_address;
	uint64_t address; /* from the kernel; selects the operand */
};
/* fault_operand.c: uses only the bytes and the registers. */
void dp_access_decode(const struct dp_access_ask *ask, struct dp_access *ret);
/* Formats "read of 4 bytes at 0xc", with address `at`. */
void dp_access_text(const struct dp_access *a, uint64_t at, char *text, size_t size);
/* Reads at most `size` bytes of code at `addr`, from the file if there is one. Returns how many. */
size_t dp_fault_code(struct dp_debug_ctx *w, uint64_t addr, uint8_t *bytes, size_t size);
/* fault_access.c: what the thread's instruction accesses; reads divisors and jump targets from memory. */
void dp_access_of(struct dp_debug_ctx *w, const struct user_regs_struct *regs, const struct dp_snap_siginfo *info,
                  struct dp_access *ret);
/* fault_text.c: "SIGSEGV", "address not mapped to object"; the strings are static. */
void dp_fault_siginfo(const siginfo_t *si, struct dp_snap_siginfo *ret);
/* fault_abort.c: who called abort(), and its message. */
void dp_fault_abort(struct dp_debug_ctx *w, struct dp_snap_thread *t);
/*
 * Decodes why a faulted thread faulted, from its instruction and registers; adds classifiers to the snapshot. For any thread:
 * stores its innermost instruction as text.
 */
void dp_fault_explain(struct dp_debug_ctx *w, const struct dp_stopped_thread *t, struct dp_snap_thread *into);

#endif
