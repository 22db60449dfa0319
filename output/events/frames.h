/* SPDX-License-Identifier: MIT */
/* Names for the frames of a backtrace, in the style of debuggers. */
#ifndef DP_OUTPUT_EVENTS_FRAMES_H
#define DP_OUTPUT_EVENTS_FRAMES_H

#include "probes/probes.h"

#define DP_FRAME_TEXT 4096u

/*
 * Writes "symbol+0x15/0x90 [module]", or for generated code "name+0x15/0x90 [perf-123.map]". `exact`: not a return address.
 * A return address is looked up one byte earlier, because a call at the very end of a function would be assigned to the next one;
 * the printed offset is that of the address itself. `readable`: demangled C++ and Rust names.
 */
void dp_frame_describe(struct dp_image *image, uint64_t pc, bool exact, bool readable, char text[DP_FRAME_TEXT]);
/* The name of the function alone, for flame graphs. */
void dp_frame_function(struct dp_image *image, uint64_t pc, bool exact, char text[DP_FRAME_TEXT]);
#define DP_FRAME_HOW " (by frame pointer)" /* behind the text of such a frame */

struct dp_frame_shown {
	uint64_t pc;      /* 0: callers are missing here, `text` is DP_FRAMES_CUT */
	const char *text; /* "" if there is no image */
	bool by_pointer;  /* found by the frame pointer of the next inner frame, for which there is no unwind table */
};
/* Calls `each` for each frame of a DP_TYPE_BACKTRACE value, innermost first. `image` may be NULL. */
void dp_frames_each(struct dp_image *image, const struct dp_field_value *backtrace, bool readable,
                    void (*each)(size_t i, const struct dp_frame_shown *frame, void *data), void *data);
/* What the trace keeps of a return address: is it that of a signal handler, is it in a function in which threads begin? */
bool dp_frame_is_signal_return(struct dp_image *image, uint64_t pc);
bool dp_frame_begins_thread(struct dp_image *image, uint64_t pc);
#define DP_FRAMES_CUT "..." /* for callers that are missing */
/* Was a backtrace with `n` of at most `most` frames cut, given the outermost pc? No if a thread begins there. */
bool dp_frames_cut(struct dp_image *image, uint64_t pc, size_t n, size_t most);

#endif
