/* SPDX-License-Identifier: MIT */
/*
 * Readers refuse a whole trace if the last packet of a file is truncated. A kill -9 can cut a write, but only between two pages
 * of the file. So packets are collected in memory and cross no page boundary; the rest of a page that they do not fill is
 * padding.
 */
#include "output/ctf/ctf_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { PAGE = 4096, HEADER = sizeof(struct dp_ctf_packet) };

void dp_ctf_stream_init(struct dp_ctf_stream *s, const uint8_t *uuid, uint64_t number)
{
	*s = (struct dp_ctf_stream){.uuid = uuid, .number = number};
}

void dp_ctf_stream_fini(struct dp_ctf_stream *s)
{
	free(s->data);
	s->data = NULL;
	s->len = s->cap = s->end = 0;
}

/* ---- packets ------------------------------------------------------------------------------------------------------------- */

/* Bytes from the end of what is there to the end of its last page; a whole page if that is full. */
static size_t page_room(const struct dp_ctf_stream *s)
{
	return PAGE - (s->size + s->len) % PAGE;
}

static bool reserve(struct dp_ctf_stream *s, size_t n)
{
	size_t cap = s->cap ? s->cap : 2 * PAGE;
	while (cap < s->len + n)
		cap *= 2;
	uint8_t *data = cap > s->cap ? realloc(s->data, cap) : s->data;
	if (!data)
		return false;
	s->data = data;
	s->cap = cap;
	return true;
}

/* Begins a packet with room for `n` bytes of events, and for its padding. */
static bool begin(struct dp_ctf_stream *s, uint64_t ns, size_t n)
{
	const size_t room = page_room(s), size = HEADER + n > room ? HEADER + n : room;
	if (!reserve(s, size + PAGE))
		return false;
	if (ns > s->last)
		s->last = ns;
	s->begin = s->last;
	s->packet = s->len;
	s->end = s->packet + size;
	s->len += HEADER;
	return true;
}

/* Appends zeroes up to the end of the page if `fill`, or if not even an empty packet would fit there. */
static void pad(struct dp_ctf_stream *s, bool fill)
{
	const size_t left = page_room(s) % PAGE;
	if (!fill && left >= HEADER)
		return;
	memset(s->data + s->len, 0, left);
	s->len += left;
}

static void finish(struct dp_ctf_stream *s, bool fill, uint64_t discarded)
{
	struct dp_ctf_packet header = {
	        .magic = DP_CTF_MAGIC,
	        .instance = s->number,
	        .begin = s->begin,
	        .end = s->last,
	        .content_bits = (s->len - s->packet) * 8,
	        .seq = s->seq++,
	        .discarded = discarded,
	        .pid = s->thread.pid,
	        .tid = s->thread.tid,
	};
	pad(s, fill);
	header.packet_bits = (s->len - s->packet) * 8;
	memcpy(header.uuid, s->uuid, sizeof(header.uuid));
	memcpy(header.procname, s->thread.name, sizeof(header.procname));
	memcpy(s->data + s->packet, &header, HEADER);
	s->end = 0;
}

/* Ends the open packet; `fill` if no more fits in its page. One without events is dropped. */
static void end_packet(struct dp_ctf_stream *s, bool fill)
{
	if (s->end && s->len == s->packet + HEADER) {
		s->len = s->packet;
		s->end = 0;
	} else if (s->end) {
		finish(s, fill, 0);
	}
}

bool dp_ctf_stream_open(struct dp_ctf_stream *s, uint64_t ns, size_t n)
{
	end_packet(s, true);
	/* An empty packet fills a page in which the event has no room. */
	if (HEADER + n > page_room(s) && page_room(s) < PAGE) {
		if (!begin(s, s->last, 0))
			return false;
		finish(s, true, 0);
	}
	return begin(s, ns, n);
}

void dp_ctf_stream_close(struct dp_ctf_stream *s)
{
	end_packet(s, false);
}

void dp_ctf_stream_thread(struct dp_ctf_stream *s, const struct dp_ctf_thread *thread)
{
	if (!memcmp(&s->thread, thread, sizeof(*thread)))
		return;
	end_packet(s, false);
	s->thread = *thread;
}

/* Readers compute losses from packet to packet: those before the first packet need an empty one before it. */
bool dp_ctf_stream_lost(struct dp_ctf_stream *s, uint64_t from, uint64_t to, uint64_t total)
{
	if (!s->seq) {
		if (!begin(s, from, 0))
			return false;
		finish(s, false, 0);
	}
	if (!begin(s, s->last, 0))
		return false;
	if (to > s->last)
		s->last = to;
	finish(s, false, total);
	return true;
}

/* ---- the file ------------------------------------------------------------------------------------------------------------ */

static size_t write_all(int fd, const uint8_t *bytes, size_t n, uint64_t at)
{
	size_t done = 0;
	while (done < n) {
		const ssize_t got = pwrite(fd, bytes + done, n - done, (off_t)(at + done));
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		done += (size_t)got;
	}
	return done;
}

/* How many of the first `n` bytes are whole packets. */
static size_t whole_packets(const struct dp_ctf_stream *s, size_t n)
{
	size_t at = 0;
	for (;;) {
		struct dp_ctf_packet header;
		if (n - at < sizeof(header))
			return at;
		memcpy(&header, s->data + at, sizeof(header));
		if (header.packet_bits / 8 > n - at)
			return at;
		at += header.packet_bits / 8;
	}
}

static struct dp_error *cut(struct dp_ctf_stream *s, int fd, size_t done)
{
	struct dp_error *err = dp_error_sys(DP_TAG_OUTPUT, "cannot write the trace");
	s->size += whole_packets(s, done);
	if (!ftruncate(fd, (off_t)s->size))
		return err;
	dp_error_destroy(err);
	return dp_error_sys(DP_TAG_OUTPUT, "cannot truncate the trace");
}

struct dp_error *dp_ctf_stream_write(struct dp_ctf_stream *s, int fd)
{
	const size_t n = dp_ctf_stream_complete(s), done = write_all(fd, s->data, n, s->size);
	if (done < n)
		return cut(s, fd, done);
	s->size += n;
	s->len -= n;
	memmove(s->data, s->data + n, s->len);
	if (s->end) {
		s->packet = 0;
		s->end -= n;
	}
	return NULL;
}
