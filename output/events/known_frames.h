/* SPDX-License-Identifier: MIT */
/*
 * The frames of backtraces, each named once, and its source lines, which another thread looks up meanwhile. Lines of output with
 * frames whose source is not known yet are held back (lines.h), so nothing waits.
 */
#ifndef DP_OUTPUT_EVENTS_KNOWN_FRAMES_H
#define DP_OUTPUT_EVENTS_KNOWN_FRAMES_H

#include "base/buf.h"
#include "output/events/frames.h"
#include "probes/point/source/source_lines.h"

struct dp_known_frame {
	uint64_t pc;      /* 0: callers are missing here, `text` is DP_FRAMES_CUT */
	const char *text; /* "" if there is no image */
	bool by_pointer;
	const struct dp_source_asked *asked;
};

/* Appends what is known of its frame `i`: "helper (inlined) util.c:20", or of the last one " util.c:31". */
void dp_put_source(struct dp_buf *b, const struct dp_source *source, size_t i);

/* ,"file":"...","line":31,"inlined":[...]; nothing if nothing is known. */
void dp_put_source_json(struct dp_buf *b, const struct dp_source *source);

struct dp_known_frames; /* opaque */
/* `readable`: see dp_frame_describe(). NULL: out of memory. */
struct dp_known_frames *dp_known_frames_create(bool readable);
struct dp_known_frames *dp_known_frames_destroy(struct dp_known_frames *k);
/* Where to ask for lines from now on, or NULL; borrowed. */
void dp_known_frames_look_up(struct dp_known_frames *k, struct dp_source_lines *lines);
/* Calls `each` for each frame of a DP_TYPE_BACKTRACE value, innermost first; they stay until dp_known_frames_forget(). */
void dp_known_frames_each(struct dp_known_frames *k, struct dp_image *image, const struct dp_field_value *backtrace,
                          void (*each)(size_t i, const struct dp_known_frame *frame, void *data), void *data);
/* Are there so many that they should be forgotten? */
bool dp_known_frames_many(const struct dp_known_frames *k);
void dp_known_frames_forget(struct dp_known_frames *k);

#endif
