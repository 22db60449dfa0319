/* SPDX-License-Identifier: MIT */
/* Inside of the analysis of faults. */
#ifndef DP_PMODULES_FAULT_H
#define DP_PMODULES_FAULT_H

#include "pmodules/capture/extract_internal.h"

enum dp_branch { DP_BRANCH_NONE, DP_BRANCH_VALUE, DP_BRANCH_MEMORY };
struct dp_access { /* what an instruction wanted of memory */
	bool is_known, is_write;
	bool is_spread; /* several addresses, in a vector */
	bool divides;
	bool is_privileged; /* programs may not execute it, or not always */
	bool is_cut;        /* the bytes are only the beginning of an instruction */
	unsigned size, align;
	uint64_t address;
	char reg[16]; /* that the address comes from, or ""; of a division the divisor's */
	bool value_known;
	uint64_t value;        /* the divisor, if it is in a register */
	enum dp_branch branch; /* where it leads: `target` itself, or what stands in memory there */
	uint64_t target;
	char target_reg[16];
	char name[32]; /* mnemonic */
};
struct dp_access_ask {
	const uint8_t *bytes;
	size_t n;
	const struct user_regs_struct *regs;
	bool has_address;
	uint64_t address; /* that the kernel names, which tells operands apart */
};
/* fault_operand.c: from the bytes and the registers alone. */
void dp_access_decode(const struct dp_access_ask *ask, struct dp_access *ret);
/* "read of 4 bytes at 0xc", at `at`. */
void dp_access_text(const struct dp_access *a, uint64_t at, char *text, size_t size);
/* The bytes of the instruction at `addr`, at most `size` of them: the file's where there is one. How many. */
size_t dp_fault_code(struct dp_world *w, uint64_t addr, uint8_t *bytes, size_t size);
/* fault_access.c: what the thread's instruction wanted; divisors and targets that are in memory are read. */
void dp_access_of(struct dp_world *w, const struct user_regs_struct *regs, const struct dp_snap_siginfo *info,
                  struct dp_access *ret);
/* fault_text.c: "SIGSEGV", "address not mapped to object"; texts are static. */
void dp_fault_siginfo(const siginfo_t *si, struct dp_snap_siginfo *ret);
/* fault_abort.c: who called abort(), and what it has said. */
void dp_fault_abort(struct dp_extract *x, struct dp_snap_thread *t);

#endif
