/* SPDX-License-Identifier: MIT */
/* Compiles .eh_frame into rows. A pure function of its input, which is untrusted. */
#ifndef DP_PROBES_UNWIND_UNWIND_CFI_H
#define DP_PROBES_UNWIND_UNWIND_CFI_H

#include "probes/unwind/unwind_rows.h"

struct dp_cfi_section {
	uint64_t addr; /* address of bytes[0], in the address space of the code pointers */
	const uint8_t *bytes;
	size_t size;
};

/* What FDEs need from their CIE. */
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
 * Adds the rows of all functions in [start, end), at most 4 GiB, with offsets from `start`. Malformed code, and code that rows
 * cannot describe, becomes DP_UNWIND_NONE. False when out of memory.
 */
bool dp_cfi_compile(const struct dp_cfi_section *section, uint64_t start, uint64_t end, struct dp_unwind_rows *ret);

/*
 * Runs the instructions [insns, insns + n), starting with `row` (unwind_program.c). `loc` is the first address they apply to.
 * `ret` is NULL for a CIE: adds no rows. False if they are malformed; the rows added so far stay valid.
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
