/* SPDX-License-Identifier: MIT */
/*
 * The CTF writer: metadata, a stream for each lane (ctf_files.h), and what `dynprobe view` needs besides (sidecar.h). The
 * metadata is written at the start, and again when fields of a class become known.
 */
#include "output/ctf/ctf.h"
#include "agent/abi.h"
#include "output/ctf/ctf_dir.h"
#include "output/ctf/ctf_files.h"
#include "output/ctf/sidecar.h"
#include "output/events/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char metadata_name[] = "metadata", next_metadata_name[] = ".metadata";

struct ctf {
	struct dp_writer base;
	struct dp_ctf_files files;
	struct dp_sidecar *sidecar;
	uint64_t lost;
	size_t *fixed; /* for each class, the length of its payloads; SIZE_MAX: it varies */
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

static struct dp_ctf_thread thread_of(pid_t pid, pid_t tid, const char *comm)
{
	struct dp_ctf_thread thread = {.pid = pid, .tid = tid};
	if (comm)
		memcpy(thread.name, comm, strnlen(comm, sizeof(thread.name) - 1));
	return thread;
}

/* False: out of memory. */
static bool put_payload(const struct ctf *c, struct dp_ctf_stream *s, const struct dp_event *e)
{
	const struct dp_fields *fields = c->base.classes[e->probe].fields;
	uint8_t *to = dp_ctf_stream_put(s, e->probe, e->ns, e->len);
	if (!to)
		return false;
	if (e->len)
		memcpy(to, e->payload, e->len);
	if (dp_fields_unwind(fields))
		dp_fields_decode(fields, e->payload, e->len, unmark, &(struct payload){e->payload, to});
	dp_ctf_stream_keep(s, e->ns, to + e->len);
	return true;
}

static struct dp_error *put_event(struct ctf *c, const struct dp_event *e)
{
	const struct dp_ctf_thread thread = thread_of(e->pid, e->tid, e->comm);
	struct dp_ctf_stream *s;
	dp_sidecar_event(c->sidecar, e);
	DP_TRY(dp_ctf_files_get(&c->files, e->lane, e->ns, &s));
	dp_ctf_stream_thread(s, &thread);
	return put_payload(c, s, e) ? dp_ctf_files_spill(&c->files) : dp_error_nomem();
}

/* ---- batches ------------------------------------------------------------------------------------------------------------- */

/* A payload whose length varies is copied before it is checked, because the target can still write there. */
static bool put_varying(struct ctf *c, struct dp_ctf_stream *s, const struct dp_event *like, struct dp_hits_item *item)
{
	struct dp_event e = *like;
	struct dp_checked checked;
	e.payload = item->payload;
	e.len = item->len;
	item->damaged = !dp_writer_check(&c->base, &e, &checked);
	if (item->damaged)
		return true;
	e.payload = checked.payload;
	e.len = checked.len;
	dp_sidecar_event(c->sidecar, &e);
	return put_payload(c, s, &e);
}

static bool put_item(struct ctf *c, struct dp_ctf_stream *s, const struct dp_event *like, struct dp_hits_item *item)
{
	const size_t n = c->fixed[like->probe];
	if (n == SIZE_MAX)
		return put_varying(c, s, like, item);
	item->damaged = item->len < n;
	uint8_t *to = item->damaged ? NULL : dp_ctf_stream_put(s, like->probe, item->ns, n);
	if (!to)
		return item->damaged;
	if (n == sizeof(uint64_t))
		memcpy(to, item->payload, sizeof(uint64_t)); /* most events: without a call */
	else
		memcpy(to, item->payload, n);
	dp_ctf_stream_keep(s, item->ns, to + n);
	return true;
}

static struct dp_error *put_batch(struct ctf *c, const struct dp_event_batch *b)
{
	const struct dp_hits *hits = b->hits;
	const struct dp_ctf_thread thread = thread_of(b->pid, hits->tid, b->comm);
	struct dp_event e = {.ns = hits->item->ns,
	                     .pid = b->pid,
	                     .tid = hits->tid,
	                     .inner_pid = hits->inner_pid,
	                     .inner_tid = hits->inner_tid,
	                     .image = b->image};
	struct dp_ctf_stream *s;
	dp_sidecar_thread(c->sidecar, &e);
	DP_TRY(dp_ctf_files_get(&c->files, hits->lane, e.ns, &s));
	dp_ctf_stream_thread(s, &thread);
	for (size_t i = 0; i < hits->n; i++) {
		const size_t class = b->class ? b->class[hits->item[i].probe] : hits->item[i].probe;
		e.probe = (unsigned)class;
		e.ns = hits->item[i].ns;
		if (class < c->base.n && !put_item(c, s, &e, &hits->item[i]))
			return dp_error_nomem();
	}
	return dp_ctf_files_spill(&c->files);
}

static void ctf_batch(struct dp_writer *w, const struct dp_event_batch *b)
{
	struct dp_error *err = put_batch((struct ctf *)w, b);
	if (err)
		dp_writer_fail(w, err);
}

static void ctf_event(struct dp_writer *w, const struct dp_event *e)
{
	struct dp_error *err = put_event((struct ctf *)w, e);
	if (err)
		dp_writer_fail(w, err);
}

static void ctf_lost(struct dp_writer *w, uint64_t total)
{
	struct ctf *c = (struct ctf *)w;
	c->lost = total;
}

static void ctf_flush(struct dp_writer *w)
{
	struct ctf *c = (struct ctf *)w;
	struct dp_error *err = dp_sidecar_flush(c->sidecar);
	if (!err)
		err = dp_ctf_files_flush(&c->files, monotonic_now(), c->lost);
	if (err)
		dp_writer_fail(w, err);
}

static void ctf_fini(struct dp_writer *w)
{
	struct ctf *c = (struct ctf *)w;
	const int dir = c->files.dir;
	struct dp_error *err = dp_ctf_files_fini(&c->files);
	struct dp_error *second = dp_sidecar_close(c->sidecar);
	close(dir);
	free(((struct ctf *)w)->fixed);
	if (err)
		dp_writer_fail(w, err);
	if (second)
		dp_writer_fail(w, second);
}

uint64_t dp_ctf_writer_size(const struct dp_writer *w)
{
	return dp_ctf_files_size(&((const struct ctf *)w)->files);
}

uint64_t dp_ctf_metadata_size(const struct dp_writer *w)
{
	struct stat st;
	return fstatat(((const struct ctf *)w)->files.dir, metadata_name, &st, AT_SYMLINK_NOFOLLOW) ? 0 : (uint64_t)st.st_size;
}

/* ---- creation ---- */

static struct dp_error *write_metadata(const struct ctf *c, int fd)
{
	struct dp_buf text;
	struct dp_error *err = NULL;
	dp_buf_init(&text);
	dp_ctf_metadata(&text, c->files.uuid, c->base.classes, c->base.n);
	if (text.failed)
		err = dp_error_nomem();
	else if (!write_all(fd, text.data, text.len))
		err = dp_error_sys(DP_TAG_OUTPUT, "cannot write the trace's metadata");
	dp_buf_fini(&text);
	return err;
}

static struct dp_error *renew_metadata(const struct ctf *c)
{
	const int fd = openat(c->files.dir, next_metadata_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return dp_error_sys(DP_TAG_OUTPUT, "cannot write the trace's new metadata");
	struct dp_error *err = write_metadata(c, fd);
	close(fd);
	if (!err && renameat(c->files.dir, next_metadata_name, c->files.dir, metadata_name))
		err = dp_error_sys(DP_TAG_OUTPUT, "cannot replace the trace's metadata");
	if (err)
		unlinkat(c->files.dir, next_metadata_name, 0);
	return err;
}

/* Event classes are numbered, so a new one does not change the meaning of the events in the trace. */
static void ctf_known(struct dp_writer *w, unsigned i)
{
	struct ctf *c = (struct ctf *)w;
	struct dp_error *err = renew_metadata(c);
	c->fixed[i] = dp_writer_fixed(w->classes[i].fields);
	if (!err)
		err = dp_sidecar_renew(c->sidecar);
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

/* The metadata appears complete: readers refuse a directory in which a kill has left an empty one. */
static struct dp_error *create_files(struct ctf *c, const char *dir)
{
	struct dp_error *err = NULL;
	DP_TRY(dp_dir_create(dir));
	DP_TRY(dp_dir_without_trace(dir));
	dp_dir_unlink(dir, next_metadata_name); /* of a killed run */
	if ((c->files.dir = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
		err = dp_error_sys(DP_TAG_OUTPUT, "cannot open %s", dir);
	if (!err)
		err = renew_metadata(c);
	if (!err)
		err = dp_sidecar_create(&(struct dp_sidecar_of){c->files.dir, c->files.uuid, c->base.classes, c->base.n},
		                        &c->sidecar);
	if (!err)
		return NULL;
	if (c->files.dir >= 0)
		close(c->files.dir);
	dp_dir_undo(dir, metadata_name);
	return err;
}

struct dp_error *dp_ctf_writer_create(const char *dir, const struct dp_event_class *classes, size_t n, struct dp_writer **ret)
{
	static const struct dp_writer_ops ops = {.event = ctf_event,
	                                         .batch = ctf_batch,
	                                         .known = ctf_known,
	                                         .lost = ctf_lost,
	                                         .flush = ctf_flush,
	                                         .fini = ctf_fini};
	struct ctf *c = n < UINT16_MAX ? calloc(1, sizeof(*c)) : NULL;
	if (!c || !(c->fixed = calloc(n + 1, sizeof(*c->fixed)))) {
		free(c);
		return dp_error_nomem();
	}
	for (size_t i = 0; i < n; i++)
		c->fixed[i] = dp_writer_fixed(classes[i].fields);
	c->base = (struct dp_writer){.ops = &ops, .classes = classes, .n = n};
	c->files = (struct dp_ctf_files){.dir = -1, .created = monotonic_now()};
	make_uuid(c->files.uuid);
	struct dp_error *err = create_files(c, dir);
	if (err) {
		free(c->fixed);
		free(c);
		return err;
	}
	*ret = &c->base;
	return NULL;
}
