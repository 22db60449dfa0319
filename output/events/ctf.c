/* SPDX-License-Identifier: MIT */
/*
 * The CTF writer. Readers refuse a whole trace if its last packet is truncated. A kill -9 can cut a write, but only between two
 * pages of the file. So a packet is collected in memory, written by one call, and crosses no page boundary (unless it contains a
 * single event larger than a page). The rest of a page is padded. The metadata is written at the start. Readers also require that
 * time never goes back within a stream: an event older than its predecessor gets the predecessor's time.
 */
#include "output/events/ctf.h"
#include "agent/abi.h"
#include "output/events/ctf_dir.h"
#include "output/events/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, HEADER = sizeof(struct dp_ctf_packet) };
static const char metadata_name[] = "metadata", next_metadata_name[] = ".metadata", stream_name[] = "events";

struct ctf {
	struct dp_writer base;
	int dir, fd;
	uint8_t uuid[16];
	struct dp_buf packet; /* header, then events; empty if there is nothing to write */
	size_t capacity;      /* maximum size of the packet */
	uint64_t created;     /* time of creation */
	uint64_t begin, last; /* time of the packet's first event; of the latest event so far */
	uint64_t seq;
	uint64_t lost, lost_written;
	off_t size; /* of the complete packets in the file */
};

static bool write_all(int fd, const uint8_t *bytes, size_t n)
{
	for (size_t done = 0; done < n;) {
		ssize_t got = write(fd, bytes + done, n - done);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return false;
		done += (size_t)got;
	}
	return true;
}

/* Bytes from the end of the file to the end of its last page; a whole page if that is full. */
static size_t page_room(const struct ctf *c)
{
	return PAGE - (size_t)c->size % PAGE;
}

/* Appends zeroes up to the end of the page if `fill`, or if not even an empty packet would fit there. */
static void pad(struct ctf *c, bool fill)
{
	size_t left = (PAGE - ((size_t)c->size + c->packet.len) % PAGE) % PAGE;
	if (fill || left < HEADER)
		dp_buf_grow(&c->packet, left);
}

/* Writes the packet with `header` at its start. */
static void write_packet(struct ctf *c, struct dp_ctf_packet header, bool fill)
{
	header.magic = DP_CTF_MAGIC;
	header.seq = c->seq;
	header.content_bits = c->packet.len * 8;
	pad(c, fill);
	if (c->packet.failed) {
		dp_writer_fail(&c->base, dp_error_nomem());
		return;
	}
	header.packet_bits = c->packet.len * 8;
	memcpy(header.uuid, c->uuid, sizeof(header.uuid));
	memcpy(c->packet.data, &header, HEADER);
	if (!write_all(c->fd, c->packet.data, c->packet.len)) {
		dp_writer_fail(&c->base, dp_error_sys(DP_TAG_OUTPUT, "cannot write the trace"));
		if (ftruncate(c->fd, c->size))
			dp_writer_fail(&c->base, dp_error_sys(DP_TAG_OUTPUT, "cannot truncate the trace"));
		return;
	}
	c->size += (off_t)c->packet.len;
	c->seq++;
	c->packet.len = 0;
}

/* Finishes the packet; `fill` if no more fits in its page. */
static void finish_packet(struct ctf *c, bool fill)
{
	write_packet(c, (struct dp_ctf_packet){.begin = c->begin, .end = c->last, .discarded = c->lost}, fill);
	c->lost_written = c->lost;
}

/* Readers compute losses from packet to packet: losses before the first packet need an empty one before it. */
static void write_baseline(struct ctf *c)
{
	struct dp_buf first = c->packet;
	uint64_t time = c->created < c->begin ? c->created : c->begin;
	dp_buf_init(&c->packet);
	dp_buf_grow(&c->packet, HEADER);
	write_packet(c, (struct dp_ctf_packet){.begin = time, .end = time}, true);
	dp_buf_fini(&c->packet);
	c->packet = first;
}

static void close_packet(struct ctf *c, bool fill)
{
	if (!c->seq && c->lost)
		write_baseline(c);
	if (!c->base.error)
		finish_packet(c, fill);
}

/* Begins an empty packet at `time` or later. */
static void open_packet(struct ctf *c, uint64_t time)
{
	if (time > c->last)
		c->last = time;
	c->begin = c->last;
	dp_buf_grow(&c->packet, HEADER);
	c->capacity = page_room(c);
}

/* Makes sure that `n` more bytes fit in the packet: in this page, in the next one, or in a larger packet. */
static void make_room(struct ctf *c, uint64_t time, size_t n)
{
	if (c->packet.len && c->packet.len + n > c->capacity)
		close_packet(c, true);
	if (!c->packet.len && HEADER + n > page_room(c) && page_room(c) < PAGE) {
		open_packet(c, c->last);
		close_packet(c, true);
	}
	if (!c->packet.len)
		open_packet(c, time);
}

static uint64_t monotonic_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct payload { /* the record's, and its copy in the packet */
	const uint8_t *from;
	uint8_t *to;
};

/* A trace has addresses only: readers could not tell a marked one from an address. */
static void unmark(const struct dp_field *field, const struct dp_field_value *v, void *data)
{
	const struct payload *p = data;
	if (field->type != DP_TYPE_BACKTRACE)
		return;
	for (size_t i = 0; i < v->n; i++) {
		uint8_t *at = p->to + (v->bytes - p->from) + i * sizeof(uint64_t);
		uint64_t frame;
		memcpy(&frame, at, sizeof(frame));
		frame = dp_frame_pc(frame);
		memcpy(at, &frame, sizeof(frame));
	}
}

static void ctf_event(struct dp_writer *w, const struct dp_event *e)
{
	struct ctf *c = (struct ctf *)w;
	struct dp_ctf_event header = {.id = (uint16_t)e->probe, .pid = e->pid, .tid = e->tid};
	make_room(c, e->ns, sizeof(header) + e->len);
	if (e->ns > c->last)
		c->last = e->ns;
	header.timestamp = c->last;
	if (e->comm)
		memcpy(header.procname, e->comm, strnlen(e->comm, DP_CTF_PROCNAME - 1));
	dp_buf_put(&c->packet, &header, sizeof(header));
	const size_t at = c->packet.len;
	dp_buf_put(&c->packet, e->payload, e->len);
	const struct dp_fields *fields = w->classes[e->probe].fields;
	if (!c->packet.failed && dp_fields_unwind(fields))
		dp_fields_decode(fields, e->payload, e->len, unmark, &(struct payload){e->payload, c->packet.data + at});
}

static void ctf_lost(struct dp_writer *w, uint64_t total)
{
	struct ctf *c = (struct ctf *)w;
	c->lost = total;
}

/* Losses alone make a packet without events, so that every reader sees them. */
static void ctf_flush(struct dp_writer *w)
{
	struct ctf *c = (struct ctf *)w;
	if (!c->packet.len && c->lost != c->lost_written)
		open_packet(c, monotonic_now());
	if (c->packet.len || c->packet.failed)
		close_packet(c, false);
}

static void ctf_fini(struct dp_writer *w)
{
	struct ctf *c = (struct ctf *)w;
	close(c->dir);
	if (close(c->fd))
		dp_writer_fail(w, dp_error_sys(DP_TAG_OUTPUT, "cannot write the trace"));
	dp_buf_fini(&c->packet);
}

/* ---- creation ---- */

static struct dp_error *write_metadata(const struct ctf *c, int fd)
{
	struct dp_buf text;
	struct dp_error *err = NULL;
	dp_buf_init(&text);
	dp_ctf_metadata(&text, c->uuid, c->base.classes, c->base.n);
	if (text.failed)
		err = dp_error_nomem();
	else if (!write_all(fd, text.data, text.len))
		err = dp_error_sys(DP_TAG_OUTPUT, "cannot write the trace's metadata");
	dp_buf_fini(&text);
	return err;
}

static struct dp_error *renew_metadata(const struct ctf *c)
{
	const int fd = openat(c->dir, next_metadata_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return dp_error_sys(DP_TAG_OUTPUT, "cannot write the trace's new metadata");
	struct dp_error *err = write_metadata(c, fd);
	close(fd);
	if (!err && renameat(c->dir, next_metadata_name, c->dir, metadata_name))
		err = dp_error_sys(DP_TAG_OUTPUT, "cannot replace the trace's metadata");
	if (err)
		unlinkat(c->dir, next_metadata_name, 0);
	return err;
}

/* Event classes are numbered, so a new one does not change the meaning of the events in the trace. */
static void ctf_known(struct dp_writer *w, unsigned i)
{
	struct dp_error *err = renew_metadata((struct ctf *)w);
	(void)i;
	if (err)
		dp_writer_fail(w, err);
}

static void make_uuid(uint8_t uuid[16])
{
	if (getrandom(uuid, 16, 0) != 16) {
		uint64_t weak[2] = {monotonic_now(), (uint64_t)getpid()};
		memcpy(uuid, weak, 16);
	}
	uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x40); /* RFC 4122: version 4, */
	uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80); /* variant 1 */
}

static struct dp_error *create_files(struct ctf *c, const char *dir)
{
	int metadata = -1;
	DP_TRY(dp_dir_create(dir));
	DP_TRY(dp_dir_new_file(dir, metadata_name, &metadata));
	struct dp_error *err = write_metadata(c, metadata);
	close(metadata);
	if (!err && (c->dir = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
		err = dp_error_sys(DP_TAG_OUTPUT, "cannot open %s", dir);
	if (!err)
		err = dp_dir_new_file(dir, stream_name, &c->fd);
	if (!err)
		return NULL;
	if (c->dir >= 0)
		close(c->dir);
	dp_dir_undo(dir, metadata_name);
	return err;
}

struct dp_error *dp_ctf_writer_create(const char *dir, const struct dp_event_class *classes, size_t n, struct dp_writer **ret)
{
	static const struct dp_writer_ops ops = {
	        .event = ctf_event, .known = ctf_known, .lost = ctf_lost, .flush = ctf_flush, .fini = ctf_fini};
	struct ctf *c = n < UINT16_MAX ? calloc(1, sizeof(*c)) : NULL;
	if (!c)
		return dp_error_nomem();
	c->base = (struct dp_writer){.ops = &ops, .classes = classes, .n = n};
	c->dir = c->fd = -1;
	c->created = monotonic_now();
	make_uuid(c->uuid);
	struct dp_error *err = create_files(c, dir);
	if (err) {
		free(c);
		return err;
	}
	*ret = &c->base;
	return NULL;
}
