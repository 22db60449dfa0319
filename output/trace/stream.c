/* SPDX-License-Identifier: MIT */
#include "output/trace/stream.h"

#include "agent/abi.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER = sizeof(struct dp_ctf_packet), PAGE = 4096, BLOCK = 128 << 10, PACKET_MOST = 1 << 20 };

struct dp_error *dp_trace_stream_open(int fd, const char *name, const struct dp_trace_layout *layout,
                                      struct dp_trace_stream **ret)
{
	struct stat st;
	struct dp_trace_stream *s = calloc(1, sizeof(*s));
	if (!s || !(s->name = strdup(name)) || fstat(fd, &st)) {
		struct dp_error *err = s && s->name ? dp_error_sys(DP_TAG_BAD_TRACE, "cannot read %s", name) : dp_error_nomem();
		close(fd);
		if (s)
			free(s->name);
		free(s);
		return err;
	}
	s->layout = layout;
	s->fd = fd;
	s->size = (uint64_t)st.st_size;
	*ret = s;
	return NULL;
}

struct dp_trace_stream *dp_trace_stream_close(struct dp_trace_stream *s)
{
	if (!s)
		return NULL;
	close(s->fd);
	free(s->block);
	free(s->name);
	free(s);
	return NULL;
}

static bool damaged(struct dp_trace_stream *s, const char *why)
{
	snprintf(s->damage, sizeof(s->damage), "%.64s: %s at byte %" PRIu64, s->name, why, s->at);
	s->size = s->at;
	s->event = s->end = NULL;
	return false;
}

/* ---- blocks ---------------------------------------------------------------------------------------------------------------- */

static bool grow(struct dp_trace_stream *s, size_t n)
{
	if (n <= s->capacity)
		return true;
	uint8_t *grown = realloc(s->block, n);
	if (!grown)
		return false;
	s->block = grown;
	s->capacity = n;
	return true;
}

/* Reads up to `n` bytes from `at` on; how many came. */
static size_t read_block(struct dp_trace_stream *s, size_t n)
{
	s->start = s->at;
	s->have = 0;
	while (s->have < n) {
		const ssize_t got = pread(s->fd, s->block + s->have, n - s->have, (off_t)(s->start + s->have));
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		s->have += (size_t)got;
	}
	return s->have;
}

/* The `n` bytes at the packet's place, NULL if they are not there. While packets are skipped only their pages are read. */
static const uint8_t *bytes(struct dp_trace_stream *s, size_t n)
{
	const uint64_t left = s->size - s->at;
	if (s->at >= s->start && s->at - s->start <= s->have && s->have - (s->at - s->start) >= n)
		return s->block + (s->at - s->start);
	size_t want = s->from > s->head.end ? PAGE : BLOCK;
	want = want < n ? n : want;
	if (want > left)
		want = (size_t)left;
	if (n > left || !grow(s, want) || read_block(s, want) < n)
		return NULL;
	return s->block;
}

/* ---- packets --------------------------------------------------------------------------------------------------------------- */

static const char *check(const struct dp_trace_stream *s, const struct dp_ctf_packet *p)
{
	if (p->magic != DP_CTF_MAGIC)
		return "no packet begins";
	if (memcmp(p->uuid, s->layout->uuid, sizeof(p->uuid)) != 0)
		return "a packet of another trace begins";
	if (p->stream_id || p->packet_bits % 8 || p->content_bits % 8 || p->content_bits > p->packet_bits ||
	    p->content_bits / 8 < HEADER || p->packet_bits / 8 > PACKET_MOST)
		return "the packet has impossible sizes";
	if (p->packet_bits / 8 > s->size - s->at)
		return "the packet is cut off";
	if (p->begin > p->end || p->begin < s->now)
		return "the packet's time goes backwards";
	return NULL;
}

/* Reads the header of the packet at `at`. False at the end, and if it is damaged. */
static bool read_header(struct dp_trace_stream *s)
{
	struct dp_ctf_packet head;
	if (s->at >= s->size)
		return false;
	const uint8_t *raw = bytes(s, HEADER);
	if (!raw)
		return damaged(s, "the file is cut off");
	memcpy(&head, raw, sizeof(head));
	const char *why = check(s, &head);
	if (why)
		return damaged(s, why);
	head.procname[sizeof(head.procname) - 1] = '\0';
	s->head = head;
	s->discarded = head.discarded;
	return true;
}

/* Begins the next packet with events. False at the end. */
static bool next_packet(struct dp_trace_stream *s)
{
	while (read_header(s)) {
		const size_t content = s->head.content_bits / 8, whole = s->head.packet_bits / 8;
		const bool skipped = s->head.end < s->from || content == HEADER;
		const uint8_t *raw = skipped ? NULL : bytes(s, content);
		if (!skipped && !raw)
			return damaged(s, "the file is cut off");
		s->now = skipped ? s->head.end : s->head.begin;
		if (!skipped) {
			s->event = raw + HEADER;
			s->end = raw + content;
			return true;
		}
		s->at += whole;
	}
	return false;
}

bool dp_trace_stream_bounds(struct dp_trace_stream *s, uint64_t *begin, uint64_t *end)
{
	bool any = false;
	const uint64_t from = s->from, size = s->size;
	s->from = UINT64_MAX;
	for (s->at = 0; read_header(s); s->at += s->head.packet_bits / 8) {
		if (s->head.content_bits / 8 > HEADER) {
			*begin = any ? *begin : s->head.begin;
			*end = s->head.end;
			any = true;
		}
		s->now = s->head.end;
	}
	s->from = from;
	s->size = size;
	s->at = s->now = 0;
	s->damage[0] = '\0';
	s->head = (struct dp_ctf_packet){0};
	return any;
}

/* ---- events ---------------------------------------------------------------------------------------------------------------- */

/* Takes the event's header; false if it is damaged. */
static bool take_header(struct dp_trace_stream *s, unsigned *id)
{
	const size_t left = (size_t)(s->end - s->event);
	struct dp_ctf_short word;
	struct dp_ctf_long whole;
	if (left < sizeof(word))
		return false;
	memcpy(&word, s->event, sizeof(word));
	*id = word.id_and_time & DP_CTF_ID_LONG;
	if (*id != DP_CTF_ID_LONG) {
		const uint64_t low = word.id_and_time >> DP_CTF_ID_BITS, before = s->now & (DP_CTF_TIME_SPAN - 1);
		s->now += low >= before ? low - before : low + DP_CTF_TIME_SPAN - before;
		s->event += sizeof(word);
		return true;
	}
	if (left < sizeof(whole))
		return false;
	memcpy(&whole, s->event, sizeof(whole));
	if (whole.timestamp < s->now)
		return false;
	*id = whole.id;
	s->now = whole.timestamp;
	s->event += sizeof(whole);
	return true;
}

static bool take_event(struct dp_trace_stream *s, struct dp_event *ret)
{
	unsigned id;
	if (!take_header(s, &id))
		return damaged(s, "an event of the packet is damaged");
	if (id >= s->layout->n)
		return damaged(s, "the packet has an event of an unknown class");
	const size_t len = dp_trace_layout_length(s->layout, id, s->event, (size_t)(s->end - s->event));
	if (len == SIZE_MAX)
		return damaged(s, "an event of the packet is damaged");
	*ret = (struct dp_event){.ns = s->now,
	                         .pid = s->head.pid,
	                         .tid = s->head.tid,
	                         .comm = s->head.procname,
	                         .probe = id,
	                         .payload = s->event,
	                         .len = len};
	s->event += len;
	return true;
}

bool dp_trace_stream_next(struct dp_trace_stream *s, struct dp_event *ret, bool *packet)
{
	*packet = false;
	if (s->event == s->end) {
		if (s->event)
			s->at += s->head.packet_bits / 8;
		s->event = s->end = NULL;
		*packet = true;
		if (!next_packet(s))
			return false;
	}
	return take_event(s, ret);
}
