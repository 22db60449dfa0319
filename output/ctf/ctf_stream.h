/* SPDX-License-Identifier: MIT */
/*
 * One stream of a trace: packets of events in memory, until they are written to the stream's file. A packet has the events of one
 * thread and crosses no page of the file, unless it has a single event that is larger than a page. Times of a stream never go
 * back: an event older than its predecessor gets the predecessor's time.
 */
#ifndef DP_OUTPUT_CTF_STREAM_H
#define DP_OUTPUT_CTF_STREAM_H

#include "base/error.h"
#include "output/ctf/ctf.h"

#include <string.h>

struct dp_ctf_thread { /* whose events they are */
	pid_t pid, tid;
	char name[DP_CTF_PROCNAME]; /* NUL-padded */
} __attribute__((packed));

struct dp_ctf_stream {
	const uint8_t *uuid; /* the trace's */
	uint64_t number;     /* of the file */
	uint64_t seq;        /* of the next packet */
	struct dp_ctf_thread thread;
	uint64_t begin, last; /* time of the open packet's begin; of the latest event */
	uint64_t size;        /* of the file: complete packets only */
	uint8_t *data;        /* complete packets that are not written yet, then the open one */
	size_t len, cap;
	size_t packet; /* where the open packet begins */
	size_t end;    /* where it must end; 0: none is open */
};

void dp_ctf_stream_init(struct dp_ctf_stream *s, const uint8_t *uuid, uint64_t number);
/* Drops what is not written. */
void dp_ctf_stream_fini(struct dp_ctf_stream *s);
/* From now on the events are this thread's. */
void dp_ctf_stream_thread(struct dp_ctf_stream *s, const struct dp_ctf_thread *thread);
/* Ends the open packet, so that all events can be written. */
void dp_ctf_stream_close(struct dp_ctf_stream *s);
/* Appends a packet without events, which says how many the run has lost from `from` (for the first such packet) to `to`. */
bool dp_ctf_stream_lost(struct dp_ctf_stream *s, uint64_t from, uint64_t to, uint64_t total);
/* The bytes that dp_ctf_stream_write() would write. */
static inline size_t dp_ctf_stream_complete(const struct dp_ctf_stream *s)
{
	return s->end ? s->packet : s->len;
}
/* Writes the complete packets by one call. If that fails, the file ends after the last packet that is whole. */
struct dp_error *dp_ctf_stream_write(struct dp_ctf_stream *s, int fd) DP_MUST_CHECK;

/* Ends the open packet and begins another with room for `n` bytes, at `ns` or later. False: out of memory. */
bool dp_ctf_stream_open(struct dp_ctf_stream *s, uint64_t ns, size_t n);

/*
 * Puts the header of an event and returns the place of its payload, of at most `n` bytes; NULL: out of memory. The event counts
 * from dp_ctf_stream_keep() on.
 */
static inline uint8_t *dp_ctf_stream_put(struct dp_ctf_stream *s, unsigned id, uint64_t ns, size_t n)
{
	if (s->len + sizeof(struct dp_ctf_long) + n > s->end && !dp_ctf_stream_open(s, ns, sizeof(struct dp_ctf_long) + n))
		return NULL;
	const uint64_t time = ns > s->last ? ns : s->last;
	uint8_t *to = s->data + s->len;
	if (id < DP_CTF_ID_LONG && time - s->last < DP_CTF_TIME_SPAN) {
		const struct dp_ctf_short header = {id | (uint32_t)time << DP_CTF_ID_BITS};
		memcpy(to, &header, sizeof(header));
		return to + sizeof(header);
	}
	const struct dp_ctf_long header = {DP_CTF_ID_LONG, id, time};
	memcpy(to, &header, sizeof(header));
	return to + sizeof(header);
}

/* Keeps the event, with the payload that ends before `end`. */
static inline void dp_ctf_stream_keep(struct dp_ctf_stream *s, uint64_t ns, const uint8_t *end)
{
	s->len = (size_t)(end - s->data);
	if (ns > s->last)
		s->last = ns;
}

#endif
