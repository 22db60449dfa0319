/* SPDX-License-Identifier: MIT */
/* The file: a header, a table, compressed sections; written beside its place and renamed. */
#include "base/cleanup.h"
#include "pmodules/file_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <zstd.h>

enum { SECTIONS = 8, ROOM = sizeof(struct dp_file_header) + SECTIONS * sizeof(struct dp_file_section) };

struct output {
	struct dp_buf file;
	struct dp_file_section section[SECTIONS];
	uint32_t n;
	uint64_t raw;
};

/* Eight bytes at a time: table[k] is what a byte does to the sum when k more follow it. Filled with the same values by whoever
 * comes first. */
static uint32_t crc_table[8][256];

static void fill_crc_table(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;
		for (int bit = 0; bit < 8; bit++)
			c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
		crc_table[0][i] = c;
	}
	for (unsigned k = 1; k < 8; k++)
		for (uint32_t i = 0; i < 256; i++)
			crc_table[k][i] = crc_table[k - 1][i] >> 8 ^ crc_table[0][crc_table[k - 1][i] & 0xff];
}

static uint32_t crc_of_eight(const uint8_t *p, uint32_t crc)
{
	uint64_t v;
	memcpy(&v, p, sizeof(v));
	v ^= crc;
	crc = 0;
	for (unsigned k = 0; k < 8; k++)
		crc ^= crc_table[7 - k][v >> 8 * k & 0xff];
	return crc;
}

uint32_t dp_file_crc(uint32_t crc, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;
	if (!crc_table[7][255])
		fill_crc_table();
	crc = ~crc;
	for (; n >= 8; n -= 8, p += 8)
		crc = crc_of_eight(p, crc);
	while (n--)
		crc = crc >> 8 ^ crc_table[0][(uint8_t)(crc ^ *p++)];
	return ~crc;
}

static struct dp_error *no_memory(void)
{
	return dp_error(DP_TAG_NOMEM, "out of memory for the snapshot's file");
}

/* Sections of which there is nothing are not there. */
static struct dp_error *add_section(struct output *o, uint32_t tag, const struct dp_buf *raw, int level)
{
	if (raw->failed)
		return no_memory();
	if (!raw->len)
		return NULL;
	o->raw += raw->len;
	if (o->raw > DP_FILE_RAW_MAX)
		return dp_error(DP_TAG_OUTPUT,
		                "the snapshot has %llu MiB, and a file may have %u: ask for less memory (--max-bytes)",
		                (unsigned long long)(o->raw >> 20), DP_FILE_RAW_MAX >> 20);
	const size_t bound = ZSTD_compressBound(raw->len), at = o->file.len;
	dp_auto_free uint8_t *room = malloc(bound); /* of which the tenth part is touched */
	const size_t size = room ? ZSTD_compress(room, bound, raw->data, raw->len, level) : 0;
	if (!room || ZSTD_isError(size))
		return no_memory();
	dp_buf_put(&o->file, room, size);
	o->section[o->n++] = (struct dp_file_section){.tag = tag,
	                                              .flags = DP_FILE_ZSTD,
	                                              .offset = at,
	                                              .size = size,
	                                              .raw = raw->len,
	                                              .crc = dp_file_crc(0, room, size)};
	return NULL;
}

static void put_head(struct output *o)
{
	struct dp_file_header h = {.version = DP_FILE_VERSION, .nsections = o->n};
	memcpy(h.magic, DP_FILE_MAGIC, sizeof(h.magic));
	h.crc = dp_file_crc(dp_file_crc(0, &h, sizeof(h)), o->section, o->n * sizeof(*o->section));
	memcpy(o->file.data, &h, sizeof(h));
	memcpy(o->file.data + sizeof(h), o->section, o->n * sizeof(*o->section));
}

static struct dp_error *add_all(struct output *o, const struct dp_snapshot *s, struct dp_file_strings *strings)
{
	struct dp_error *err = NULL;
	struct dp_buf raw = {0};
	struct dp_file_encoder e = {.to = &raw, .strings = strings};
	dp_buf_grow(&o->file, ROOM);
	for (size_t i = 0; !err && i < dp_keep_nsections; i++) {
		const struct dp_keep_section *part = &dp_keep_section[i];
		raw.len = 0;
		dp_file_encode(&e, s, part->first, part->last);
		err = add_section(o, part->tag, &raw, part->level);
	}
	dp_buf_fini(&raw);
	if (!err)
		err = add_section(o, DP_FILE_STRINGS, dp_file_strings_bytes(strings), 3);
	if (!err && o->file.failed)
		err = no_memory();
	if (!err)
		put_head(o);
	return err;
}

struct dp_error *dp_snapshot_write_bytes(struct dp_snapshot *s, struct dp_buf *ret)
{
	struct output o = {0};
	struct dp_file_strings *strings = dp_file_strings_create();
	dp_snapshot_settle(s);
	struct dp_error *err = strings ? add_all(&o, s, strings) : no_memory();
	dp_file_strings_destroy(strings);
	if (err)
		dp_buf_fini(&o.file);
	else
		*ret = o.file;
	return err;
}

/* ---- to the disk */

static struct dp_error *put_all(int fd, const struct dp_buf *b, const char *path)
{
	for (size_t done = 0; done < b->len;) {
		const ssize_t n = write(fd, b->data + done, b->len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return dp_error_sys(DP_TAG_OUTPUT, "cannot write the snapshot to %s", path);
		done += (size_t)n;
	}
	return NULL;
}

/* /dev/stdout, a pipe: nothing that a file could take the place of. */
static struct dp_error *write_through(const struct dp_buf *b, const char *path)
{
	dp_auto_close int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? dp_error_sys(DP_TAG_OUTPUT, "cannot write the snapshot to %s", path) : put_all(fd, b, path);
}

static struct dp_error *write_beside(const struct dp_buf *b, const char *path, char *beside)
{
	dp_auto_close int fd = mkostemp(beside, O_CLOEXEC); /* 0600: it holds the program's memory */
	if (fd < 0)
		return dp_error_sys(DP_TAG_OUTPUT, "cannot make a file beside %s", path);
	struct dp_error *err = put_all(fd, b, path);
	if (!err && rename(beside, path))
		err = dp_error_sys(DP_TAG_OUTPUT, "cannot rename the snapshot to %s", path);
	if (err)
		unlink(beside);
	return err;
}

static struct dp_error *write_to(struct dp_snapshot *s, const char *path, bool through)
{
	struct dp_buf b = {0};
	dp_auto_free char *beside = NULL;
	if (asprintf(&beside, "%s.XXXXXX", path) < 0)
		return no_memory();
	DP_TRY(dp_snapshot_write_bytes(s, &b));
	struct dp_error *err = through ? write_through(&b, path) : write_beside(&b, path, beside);
	dp_buf_fini(&b);
	return err;
}

struct dp_error *dp_snapshot_write(struct dp_snapshot *s, const char *path)
{
	struct stat st;
	return write_to(s, path, !stat(path, &st) && !S_ISREG(st.st_mode));
}

struct dp_error *dp_snapshot_write_beside(struct dp_snapshot *s, const char *path)
{
	return write_to(s, path, false);
}
