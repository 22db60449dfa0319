/* SPDX-License-Identifier: MIT */
/*
 * One stream of a recorded trace: a file of packets (output/ctf/ctf.h). It is read in blocks, not mapped: a file that another
 * program cuts meanwhile must not kill us. Every length is checked. A stream is read up to its first damage.
 */
#ifndef DP_OUTPUT_TRACE_STREAM_H
#define DP_OUTPUT_TRACE_STREAM_H

#include "output/ctf/ctf.h"
#include "output/trace/layout.h"

struct dp_trace_stream {
	const struct dp_trace_layout *layout; /* borrowed */
	char *name;
	int fd;
	uint64_t size, at; /* of the file; of the next packet in it */
	uint64_t from;     /* packets that end before this time are skipped */
	uint8_t *block;    /* bytes of the file, from `start` on */
	size_t capacity, have;
	uint64_t start;
	struct dp_ctf_packet head;  /* of the packet being read */
	const uint8_t *event, *end; /* what is left of it; in `block` */
	uint64_t now;               /* time of the last event */
	uint64_t discarded;
	char damage[160]; /* "" if there is none */
};

/* Takes `fd`, also on failure. */
struct dp_error *dp_trace_stream_open(int fd, const char *name, const struct dp_trace_layout *layout,
                                      struct dp_trace_stream **ret) DP_MUST_CHECK;
struct dp_trace_stream *dp_trace_stream_close(struct dp_trace_stream *s);
/*
 * Fills in the next event; comm and payload are valid until the next call, image is not set. *packet: it is the first of a
 * packet, so its process or thread may have changed. False at the end, or at a damage.
 */
bool dp_trace_stream_next(struct dp_trace_stream *s, struct dp_event *ret, bool *packet);
/* The times of the first and the last packet, by their headers; false if there is none. Reading starts again. */
bool dp_trace_stream_bounds(struct dp_trace_stream *s, uint64_t *begin, uint64_t *end);

#endif
