/* SPDX-License-Identifier: MIT */
/* Inside of the analysis of faults. */
#ifndef DP_PMODULES_FAULT_H
#define DP_PMODULES_FAULT_H

#include "pmodules/extract_internal.h"

struct dp_access { /* what an instruction wanted of memory */
	bool is_known, is_write;
	bool divides;
	unsigned size;
	uint64_t address;
	char reg[16]; /* that the address comes from, or ""; of a division the divisor's */
};
/* The bytes of the instruction at `addr`, at most `size` of them: the file's where there is one. How many. */
size_t dp_fault_code(struct dp_world *w, uint64_t addr, uint8_t *bytes, size_t size);
/* `fault`: the address that the kernel names, which tells operands apart. */
void dp_access_of(struct dp_world *w, const struct user_regs_struct *regs, uint64_t fault, struct dp_access *ret);
/* fault_text.c: "SIGSEGV", "address not mapped to object"; texts are static. */
void dp_fault_siginfo(const siginfo_t *si, struct dp_snap_siginfo *ret);
/* fault_abort.c: who called abort(), and what it has said. */
void dp_fault_abort(struct dp_extract *x, struct dp_snap_thread *t);

#endif
