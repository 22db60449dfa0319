/* SPDX-License-Identifier: MIT */
/* From .eh_frame to rows: a pure function over bytes, which it does not trust. */
#ifndef DP_PROBES_UNWIND_CFI_H
#define DP_PROBES_UNWIND_CFI_H

#include "probes/unwind/unwind_rows.h"

struct dp_cfi_section {
	uint64_t addr; /* of bytes[0], in the address space that the code pointers are in */
	const uint8_t *bytes;
	size_t size;
};

/* What a CIE says for its FDEs. */
struct dp_cfi_cie {
	size_t offset; /* in the section */
	uint64_t code_align;
	int64_t data_align;
	uint8_t encoding; /* of code pointers, DW_EH_PE_* */
	bool augmented;   /* FDEs have augmentation data */
	bool signal;      /* a signal frame */
	bool usable;
	struct dp_unwind_row initial;
};

/*
 * Adds the rows of all functions in [start, end), at most 4 GiB, with offsets from `start`. What is malformed or beyond the
 * tables' terms becomes "nothing known". False when out of memory.
 */
bool dp_cfi_compile(const struct dp_cfi_section *section, uint64_t start, uint64_t end, struct dp_unwind_rows *ret);

/*
 * Runs the instructions in [insns, insns + n) from `*row` on (unwind_program.c). `loc` is where they begin to hold; with
 * `ret` NULL (a CIE) nothing is added. False if they are malformed: the rows already added hold up to there.
 */
struct dp_cfi_run {
	const struct dp_cfi_cie *cie;
	const uint8_t *insns;
	size_t n;
	uint64_t addr; /* of insns[0] */
	uint64_t loc, start, end;
	struct dp_unwind_row row;
	struct dp_unwind_rows *ret;
};
bool dp_cfi_run(struct dp_cfi_run *run);

#endif
