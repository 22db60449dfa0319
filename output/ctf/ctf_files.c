/* SPDX-License-Identifier: MIT */
#include "output/ctf/ctf_files.h"

#include "base/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#define BUFFERS   ((size_t)16 << 20) /* memory for all streams together */
#define MOST      ((size_t)256 << 10)
#define LEAST     ((size_t)16 << 10)
#define MANY_OPEN                                                                                                                \
	256u /* descriptors, or a quarter of what dynprobe may have; a stream beyond them opens its file for each write */
#define IDLE      16u  /* flushes without an event, after which a stream gives up descriptor and memory */

struct dp_ctf_file {
	struct dp_ctf_stream stream;
	uint64_t lane;
	int fd; /* -1: not open */
	bool created;
	uint64_t used; /* the flush before its latest event */
	struct dp_ctf_file *prev, *next;
	UT_hash_handle hh;
};

/* ---- descriptors --------------------------------------------------------------------------------------------------------- */

static struct dp_error *open_file(struct dp_ctf_files *f, struct dp_ctf_file *file)
{
	char name[32];
	snprintf(name, sizeof(name), DP_CTF_STREAM_NAME "%" PRIu64, file->stream.number);
	file->fd = openat(f->dir, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | (file->created ? 0 : O_CREAT | O_EXCL), 0600);
	if (file->fd < 0)
		return dp_error_sys(DP_TAG_OUTPUT, "cannot open %s in the trace's directory", name);
	file->created = true;
	f->nopen++;
	return NULL;
}

static struct dp_error *close_file(struct dp_ctf_files *f, struct dp_ctf_file *file)
{
	const int fd = file->fd;
	if (fd < 0)
		return NULL;
	file->fd = -1;
	f->nopen--;
	return close(fd) ? dp_error_sys(DP_TAG_OUTPUT, "cannot write the trace") : NULL;
}

static struct dp_error *write_file(struct dp_ctf_files *f, struct dp_ctf_file *file)
{
	if (!dp_ctf_stream_complete(&file->stream))
		return NULL;
	if (file->fd < 0)
		DP_TRY(open_file(f, file));
	DP_TRY(dp_ctf_stream_write(&file->stream, file->fd));
	const size_t most = dp_descriptors_most() / 4;
	return f->nopen > (most < MANY_OPEN ? most : MANY_OPEN) ? close_file(f, file) : NULL;
}

/* ---- lanes --------------------------------------------------------------------------------------------------------------- */

static struct dp_ctf_file *new_file(struct dp_ctf_files *f, uint64_t number)
{
	struct dp_ctf_file *file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	dp_ctf_stream_init(&file->stream, f->uuid, number);
	file->fd = -1;
	return file;
}

static struct dp_error *file_destroy(struct dp_ctf_files *f, struct dp_ctf_file *file)
{
	struct dp_error *err = close_file(f, file);
	dp_ctf_stream_fini(&file->stream);
	free(file);
	return err;
}

/* The least recently used stream, if there are many and the event can follow its own. */
static struct dp_ctf_file *used_again(struct dp_ctf_files *f, uint64_t ns)
{
	struct dp_ctf_file *file = f->oldest;
	if (f->nfiles < DP_CTF_FILES_MANY || file->stream.last > ns)
		return NULL;
	HASH_DEL(f->of_lane, file);
	DL_DELETE(f->oldest, file);
	return file;
}

static struct dp_ctf_file *file_for(struct dp_ctf_files *f, uint64_t lane, uint64_t ns)
{
	struct dp_ctf_file *file = used_again(f, ns), *added = NULL;
	if (!file && (file = new_file(f, f->nfiles + 1)))
		f->nfiles++;
	if (!file)
		return NULL;
	file->lane = lane;
	DL_APPEND(f->oldest, file);
	HASH_ADD(hh, f->of_lane, lane, sizeof(file->lane), file);
	HASH_FIND(hh, f->of_lane, &lane, sizeof(lane), added);
	if (added)
		return added;
	DL_DELETE(f->oldest, file); /* no memory for the table */
	dp_error_destroy(file_destroy(f, file));
	return NULL;
}

struct dp_error *dp_ctf_files_get(struct dp_ctf_files *f, uint64_t lane, uint64_t ns, struct dp_ctf_stream **ret)
{
	struct dp_ctf_file *file = f->latest;
	if (!file || file->lane != lane) {
		HASH_FIND(hh, f->of_lane, &lane, sizeof(lane), file);
		if (file) {
			DL_DELETE(f->oldest, file);
			DL_APPEND(f->oldest, file);
		} else if (!(file = file_for(f, lane, ns))) {
			return dp_error_nomem();
		}
		f->latest = file;
	}
	file->used = f->flushes;
	*ret = &file->stream;
	return NULL;
}

struct dp_error *dp_ctf_files_spill(struct dp_ctf_files *f)
{
	const size_t share = BUFFERS / (f->nfiles + 1), most = share > MOST ? MOST : share < LEAST ? LEAST : share;
	return f->latest->stream.len < most ? NULL : write_file(f, f->latest);
}

/* ---- all of them --------------------------------------------------------------------------------------------------------- */

static struct dp_error *flush_file(struct dp_ctf_files *f, struct dp_ctf_file *file)
{
	dp_ctf_stream_close(&file->stream);
	DP_TRY(write_file(f, file));
	if (f->flushes - file->used < IDLE || !file->stream.data)
		return NULL;
	dp_ctf_stream_fini(&file->stream);
	return close_file(f, file);
}

/* Losses have a stream of their own: a packet in another one would claim that its lane has no older event any more. */
static struct dp_error *flush_losses(struct dp_ctf_files *f, uint64_t now, uint64_t lost)
{
	if (lost == f->lost_written)
		return NULL;
	if (!f->losses && !(f->losses = new_file(f, 0)))
		return dp_error_nomem();
	if (!dp_ctf_stream_lost(&f->losses->stream, f->created, now, lost))
		return dp_error_nomem();
	f->lost_written = lost;
	return write_file(f, f->losses);
}

struct dp_error *dp_ctf_files_flush(struct dp_ctf_files *f, uint64_t now, uint64_t lost)
{
	struct dp_ctf_file *file;
	f->flushes++;
	DL_FOREACH(f->oldest, file)
	{
		DP_TRY(flush_file(f, file));
	}
	return flush_losses(f, now, lost);
}

uint64_t dp_ctf_files_size(const struct dp_ctf_files *f)
{
	const struct dp_ctf_file *file;
	uint64_t sum = f->losses ? f->losses->stream.size + f->losses->stream.len : 0;
	DL_FOREACH(f->oldest, file)
	{
		sum += file->stream.size + file->stream.len;
	}
	return sum;
}

struct dp_error *dp_ctf_files_fini(struct dp_ctf_files *f)
{
	struct dp_ctf_file *file, *next;
	struct dp_error *first = f->losses ? file_destroy(f, f->losses) : NULL;
	HASH_CLEAR(hh, f->of_lane);
	DL_FOREACH_SAFE(f->oldest, file, next)
	{
		DL_DELETE(f->oldest, file);
		struct dp_error *err = file_destroy(f, file);
		if (first)
			dp_error_destroy(err);
		else
			first = err;
	}
	*f = (struct dp_ctf_files){.dir = -1};
	return first;
}
