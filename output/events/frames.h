/* SPDX-License-Identifier: MIT */
/* Names for the frames of a backtrace, in the style of debuggers. */
#ifndef DP_OUTPUT_EVENTS_FRAMES_H
#define DP_OUTPUT_EVENTS_FRAMES_H

#include "probes/probes.h"

#define DP_FRAME_TEXT 4096u

/*
 * Calls `each` for each frame of a DP_TYPE_BACKTRACE value, innermost first, with its pc and "symbol+0x15/0x90 [module]" ("" if
 * `image` is NULL). `readable`: demangled C++ and Rust names. A return address is looked up one byte earlier, because a call at
 * the very end of a function would be assigned to the next one; the printed offset is that of the address itself.
 */
void dp_frames_each(struct dp_image *image, const struct dp_field_value *backtrace, bool readable,
                    void (*each)(size_t i, uint64_t pc, const char *text, void *data), void *data);
#define DP_FRAMES_CUT "..." /* for callers that are missing */
/* Was a backtrace with `n` of at most `most` frames cut, given the outermost pc? No if a thread begins there. */
bool dp_frames_cut(struct dp_image *image, uint64_t pc, size_t n, size_t most);

#endif
