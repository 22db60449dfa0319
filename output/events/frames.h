/* SPDX-License-Identifier: MIT */
/* Names for the frames of a backtrace, as debuggers give them. */
#ifndef DP_OUTPUT_FRAMES_H
#define DP_OUTPUT_FRAMES_H

#include "probes/probes.h"

#define DP_FRAME_TEXT 4096u

/*
 * Calls `each` per frame of a DP_TYPE_BACKTRACE value, innermost first, with its pc and "symbol+0x15/0x90 [module]" ("" if
 * `image` is NULL); `readable`: the symbol as C++ and Rust write it, for people. A return address is looked up one byte earlier,
 * so that a call at the very end of a function is not taken for the function behind it; the offset printed is that of the address
 * itself.
 */
void dp_frames_each(struct dp_image *image, const struct dp_field_value *backtrace, bool readable,
                    void (*each)(size_t i, uint64_t pc, const char *text, void *data), void *data);
#define DP_FRAMES_CUT "..." /* stands for callers that are not there */
/* Of a backtrace that may have `most` frames and has `n`, the outermost at `pc`: has it been cut? No if a thread begins there. */
bool dp_frames_cut(struct dp_image *image, uint64_t pc, size_t n, size_t most);

#endif
