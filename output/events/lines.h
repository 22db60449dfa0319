/* SPDX-License-Identifier: MIT */
/* What the writers of lines (text, NDJSON) share: lines gathered before they go to a stream, and text that is made only once. */
#ifndef DP_OUTPUT_EVENTS_LINES_H
#define DP_OUTPUT_EVENTS_LINES_H

#include "base/buf.h"
#include "output/events/known_frames.h"
#include "output/events/writer.h"

/*
 * A frame is put where its text belongs: now if its source line is known, else when it is. Until then whole lines from there on
 * wait, but not without bound, nor for long at the end.
 */
struct dp_hole {
	size_t at, event; /* in the buffer: its place, the begin of its event */
	unsigned number;  /* of the frame in its backtrace */
	const struct dp_known_frame *frame;
};
typedef void (*dp_put_frame_fn)(struct dp_buf *to, const struct dp_known_frame *frame, unsigned *number);

struct dp_lines {
	FILE *to;
	struct dp_buf b; /* whole lines, and the one being written */
	size_t whole;    /* bytes of whole lines */
	struct dp_known_frames *known;
	dp_put_frame_fn put; /* `number`: of the next line of a frame; inlined calls count, too */
	struct dp_hole *hole;
	size_t nholes, capacity;
	unsigned number;
	struct dp_buf filled;
};

/* False: out of memory. */
bool dp_lines_init(struct dp_lines *l, FILE *to, bool readable, dp_put_frame_fn put);
/* The frames of one backtrace follow. */
void dp_lines_begin_backtrace(struct dp_lines *l);
void dp_lines_put_frame(struct dp_lines *l, const struct dp_known_frame *frame);
/* Waits for what is missing, passes everything on, and flushes the stream. */
void dp_lines_finish(struct dp_lines *l, struct dp_writer *w);
void dp_lines_fini(struct dp_lines *l);
/* Call it after each line. Passes the lines on once they are many. */
void dp_lines_end(struct dp_lines *l, struct dp_writer *w);
/* Passes on all whole lines; the stream may still buffer them. Errors go to `w`. */
void dp_lines_pass_on(struct dp_lines *l, struct dp_writer *w);
/* The same, and flushes the stream. */
void dp_lines_flush(struct dp_lines *l, struct dp_writer *w);

/* Texts made once: of a class, what is in front of each field's value. */
struct dp_pieces {
	struct dp_buf text;
	size_t *end; /* of each piece; NULL: not made yet */
	size_t n;
};
/* For `n` pieces, which the caller then appends to `text`, each followed by dp_pieces_end(). False: out of memory. */
bool dp_pieces_begin(struct dp_pieces *p, size_t n);
void dp_pieces_end(struct dp_pieces *p);
void dp_pieces_fini(struct dp_pieces *p);

static inline void dp_pieces_put(const struct dp_pieces *p, size_t i, struct dp_buf *to)
{
	const size_t start = i ? p->end[i - 1] : 0;
	dp_buf_put_blocks(to, p->text.data + start, p->end[i] - start);
}

/* The text about an event's thread, process and class, made once for each of the threads and classes that come by turns. */
enum { DP_HEADS = 256, DP_HEAD_COMM = 32 };
struct dp_heads {
	struct dp_head {
		unsigned probe;
		pid_t pid, tid, inner_pid, inner_tid;
		char comm[DP_HEAD_COMM];
		struct dp_buf text; /* empty: unused */
	} item[DP_HEADS];
};
typedef void (*dp_put_head_fn)(struct dp_buf *to, const struct dp_event *e, const void *data);
/* Appends what `put` makes of these, and never nothing. */
void dp_heads_put(struct dp_heads *h, const struct dp_event *e, dp_put_head_fn put, const void *data, struct dp_buf *to);
/* `put` would write something else now. */
void dp_heads_clear(struct dp_heads *h);
void dp_heads_fini(struct dp_heads *h);

/* A text with times in it. They come in order, so mostly only the digits below a second change. */
enum { DP_STAMP_TIMES = 2, DP_NS_PER_SECOND = 1000000000 };
struct dp_stamp {
	struct dp_buf text;
	uint64_t second[DP_STAMP_TIMES]; /* each one's begin, in ns */
	size_t at[DP_STAMP_TIMES];       /* where its nine digits are */
	unsigned n;
};
/* Appends the text with these times. False: it has to be made again, by appending to `text`, and dp_stamp_add() for each time. */
bool dp_stamp_put(struct dp_stamp *s, const uint64_t *ns, struct dp_buf *to);
void dp_stamp_clear(struct dp_stamp *s);
void dp_stamp_add(struct dp_stamp *s, uint64_t ns);
void dp_stamp_fini(struct dp_stamp *s);

#endif
