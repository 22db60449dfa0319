/* SPDX-License-Identifier: MIT */
/*
 * A stub's frame information for debuggers: at each pc, which instruction of the program the thread is at, and where the
 * program's stack pointer and registers are. Derived from the stub's bytes, so that it is also correct for stubs of other tools
 * and versions.
 */
#ifndef DP_TRAMPOLINE_CODE_FRAMES_H
#define DP_TRAMPOLINE_CODE_FRAMES_H

#include "trampoline/trampoline.h"

#define DP_FRAME_REGS 16u /* numbered as in struct dp_regs */

struct dp_frame_row { /* applies from `pc` to the next row */
	uint64_t pc;
	uint64_t original; /* the program's instruction that runs or is about to run */
	bool known;        /* false: the following fields are unknown */
	uint8_t base;      /* the program's rsp is this register (rsp or rbx) plus `offset` */
	int32_t offset;
	int32_t saved[DP_FRAME_REGS]; /* offset of the program's register from its rsp; 0: in the register itself */
};
struct dp_frame_rows {
	struct dp_frame_row *row; /* ascending */
	size_t n;
	uint64_t end; /* of the last one */
};
/*
 * Code at [start, start+n), followed from the stub address of each pair in it: at those addresses the state is the original's.
 * Bytes that nothing leads to (data) get no row of their own.
 */
struct dp_error *dp_stub_frames(const uint8_t *bytes, size_t n, uint64_t start, const struct dp_pc_pair *pair, size_t npairs,
                                struct dp_frame_rows *ret) DP_MUST_CHECK;
void dp_frame_rows_fini(struct dp_frame_rows *rows);

#endif
