/* SPDX-License-Identifier: MIT */
/*
 * Reads untrusted input: a damaged or hostile file, or one from a newer dynprobe. The header and the table are checked against
 * the file's size and their checksum first. Unknown sections are skipped. A section's uncompressed size is checked against what
 * its bytes can yield.
 */
#include "base/cleanup.h"
#include "pmodules/file/file_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <zstd.h>

/* A zstd block has at least 3 bytes and yields at most 128 KiB. */
#define RATIO_MAX ((128u << 10) / 3u)

struct input {
	const uint8_t *bytes;
	size_t n;
	struct dp_file_header header;
	struct dp_file_section section[DP_FILE_SECTIONS_MAX];
	struct dp_file_texts texts;
	struct dp_snapshot *s;
};

static const char *name_of(uint32_t tag, char to[static 5])
{
	for (unsigned i = 0; i < 4; i++) {
		const char c = (char)(tag >> 8 * i);
		to[i] = (char)(c > ' ' && c <= '~' ? c : '?');
	}
	to[4] = '\0';
	return to;
}

static struct dp_error *bad(size_t at, const char *what)
{
	return dp_error(DP_TAG_BAD_SNAPSHOT, "byte %zu: %s", at, what);
}

/* ---- header and table */

static struct dp_error *check_header(struct input *in)
{
	struct dp_file_header *h = &in->header;
	if (in->n < sizeof(*h))
		return bad(in->n, "the file ends in its header: it is not a snapshot, or is truncated");
	memcpy(h, in->bytes, sizeof(*h));
	if (!memcmp(h->magic, "\177ELF", 4))
		return dp_error_advise(bad(0, "it is an ELF file, not a snapshot"),
		                       "give a snapshot (dynprobe snapshot makes one) or a core file");
	if (memcmp(h->magic, DP_FILE_MAGIC, sizeof(h->magic)))
		return bad(0, "it is not a snapshot");
	if (h->version != DP_FILE_VERSION)
		return dp_error(
		        DP_TAG_BAD_SNAPSHOT,
		        "byte 8: the file is of version %u, and this dynprobe reads version %u: a newer dynprobe wrote it",
		        h->version, DP_FILE_VERSION);
	if (h->nsections > DP_FILE_SECTIONS_MAX)
		return bad(offsetof(struct dp_file_header, nsections), "there are too many sections");
	if (in->n < sizeof(*h) + h->nsections * sizeof(*in->section))
		return bad(in->n, "the file is truncated in its section table");
	memcpy(in->section, in->bytes + sizeof(*h), h->nsections * sizeof(*in->section));
	return NULL;
}

static bool is_crc(uint32_t found, uint32_t wanted)
{
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
	(void)found, (void)wanted;
	return true;
#else
	return found == wanted;
#endif
}

static struct dp_error *check_crc(const struct input *in)
{
	struct dp_file_header h = in->header;
	h.crc = 0;
	const uint32_t crc = dp_file_crc(dp_file_crc(0, &h, sizeof(h)), in->section, h.nsections * sizeof(*in->section));
	return is_crc(crc, in->header.crc)
	               ? NULL
	               : bad(offsetof(struct dp_file_header, crc), "the table of sections is damaged (its checksum differs)");
}

static bool is_known(uint32_t tag)
{
	for (size_t i = 0; i < dp_store_nsections; i++)
		if (tag == dp_store_section[i].tag)
			return true;
	return tag == DP_FILE_STRINGS;
}

/* Not if a newer writer used flags that are unknown here. */
static bool is_readable(const struct dp_file_section *s)
{
	return is_known(s->tag) && !(s->flags & ~(uint32_t)(DP_FILE_ZSTD | DP_FILE_NEEDED));
}

static size_t at_of(size_t i)
{
	return sizeof(struct dp_file_header) + i * sizeof(struct dp_file_section);
}

static struct dp_error *check_table(const struct input *in)
{
	uint64_t raw = 0;
	for (size_t i = 0; i < in->header.nsections; i++) {
		const struct dp_file_section *s = &in->section[i];
		if (s->offset > in->n || s->size > in->n - s->offset)
			return bad(at_of(i), "a section is not within the file: the file is truncated");
		if (!is_readable(s))
			continue;
		if (s->raw > DP_FILE_RAW_MAX || (raw += s->raw) > DP_FILE_RAW_MAX)
			return bad(at_of(i), "the sections are larger than the limit of 384 MiB");
		if (s->flags & DP_FILE_ZSTD ? s->raw > (s->size + 1) * RATIO_MAX : s->raw != s->size)
			return bad(at_of(i), "a section's uncompressed size is impossible");
	}
	return NULL;
}

/* ---- sections */

static struct dp_error *decode(struct input *in, uint32_t tag, const uint8_t *bytes, size_t n)
{
	char name[5];
	if (tag == DP_FILE_STRINGS)
		return in->texts.text ? bad(0, "there are two sections of texts")
		                      : dp_file_decode_texts(in->s, bytes, n, &in->texts);
	return dp_file_decode(in->s, &in->texts, name_of(tag, name), bytes, n);
}

static struct dp_error *damaged(const struct dp_file_section *s, const char *why)
{
	char name[5];
	return dp_error(DP_TAG_BAD_SNAPSHOT, "byte %" PRIu64 ": section %s is damaged (%s)", s->offset, name_of(s->tag, name),
	                why);
}

static struct dp_error *read_section(struct input *in, const struct dp_file_section *s)
{
	const uint8_t *stored = in->bytes + s->offset;
	if (!is_crc(dp_file_crc(0, stored, s->size), s->crc))
		return damaged(s, "its checksum differs");
	if (!(s->flags & DP_FILE_ZSTD))
		return decode(in, s->tag, stored, s->size);
	dp_auto_free uint8_t *raw = malloc(s->raw + 1);
	if (!raw)
		return dp_error_nomem();
	const size_t n = ZSTD_decompress(raw, s->raw, stored, s->size);
	if (ZSTD_isError(n) || n != s->raw)
		return damaged(s, ZSTD_isError(n) ? ZSTD_getErrorName(n) : "it is smaller than its size says");
	return decode(in, s->tag, raw, n);
}

/* Reads the texts first, wherever they are: the other sections refer to them. */
static struct dp_error *read_sections(struct input *in, bool strings)
{
	char name[5];
	for (size_t i = 0; i < in->header.nsections; i++) {
		const struct dp_file_section *s = &in->section[i];
		if (strings != (s->tag == DP_FILE_STRINGS))
			continue;
		if (is_readable(s))
			DP_TRY(read_section(in, s));
		else if (s->flags & DP_FILE_NEEDED)
			return dp_error(DP_TAG_BAD_SNAPSHOT,
			                "byte %zu: this dynprobe cannot read section %s, which is needed: "
			                "a newer dynprobe wrote the file",
			                at_of(i), name_of(s->tag, name));
	}
	return NULL;
}

static struct dp_error *read_all(struct input *in)
{
	DP_TRY(check_header(in));
	DP_TRY(check_crc(in));
	DP_TRY(check_table(in));
	in->s->id[0] = '\0';
	DP_TRY(read_sections(in, true));
	DP_TRY(read_sections(in, false));
	dp_snapshot_index(in->s);
	return NULL;
}

struct dp_error *dp_snapshot_read_bytes(const void *bytes, size_t n, struct dp_snapshot **ret)
{
	dp_auto_free struct input *in = calloc(1, sizeof(*in));
	struct dp_snapshot *s = dp_snapshot_create();
	struct dp_error *err = NULL;
	if (!in || !s)
		err = dp_error_nomem();
	else {
		*in = (struct input){.bytes = bytes, .n = n, .s = s};
		err = read_all(in);
	}
	if (err)
		dp_snapshot_destroy(s);
	else
		*ret = s;
	return err;
}

/* ---- files */

static struct dp_error *read_bytes(int fd, const char *path, struct dp_buf *to)
{
	enum { STEP = 1 << 20 };
	ssize_t n = 1;
	while (n) {
		uint8_t *room = dp_buf_grow(to, STEP);
		if (!room)
			return dp_error_nomem();
		n = read(fd, room, STEP);
		to->len -= (size_t)(STEP - (n > 0 ? n : 0));
		if (n < 0 && errno != EINTR)
			return dp_error_sys(DP_TAG_SYS, "cannot read %s", path);
		if (to->len > DP_FILE_MAX)
			return dp_error(DP_TAG_BAD_SNAPSHOT, "byte %u: the file is larger than the limit", DP_FILE_MAX);
	}
	return NULL;
}

struct dp_error *dp_snapshot_read_file(const char *path, struct dp_snapshot **ret)
{
	struct dp_buf b = {0};
	dp_auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return dp_error_advise(dp_error_sys(DP_TAG_SYS, "cannot open the snapshot %s", path),
		                       "give the path of a snapshot; dynprobe snapshot PID takes one");
	struct dp_error *err = read_bytes(fd, path, &b);
	if (!err)
		err = dp_snapshot_read_bytes(b.data, b.len, ret);
	dp_buf_fini(&b);
	return err ? dp_error_wrap(err, "cannot read the snapshot %s", path) : NULL;
}
