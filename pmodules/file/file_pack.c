/* SPDX-License-Identifier: MIT */
/*
 * Writes the sections. Each piece is compressed while the next is encoded, so no section is ever uncompressed as a whole. Finally
 * the header and the table are filled in at the front.
 */
#include "base/cleanup.h"
#include "pmodules/file/file_internal.h"
#include "pmodules/file/file_press.h"

#include <zstd.h>

enum { SECTIONS = 8, HEAD = sizeof(struct dp_file_header) + SECTIONS * sizeof(struct dp_file_section), PIECE = 256 << 10 };

struct output {
	struct dp_buf file;
	struct dp_file_section section[SECTIONS]; /* the last one is open */
	uint32_t n;
	uint64_t raw;
	ZSTD_CCtx *zstd;
	struct dp_error *err;
	struct dp_press press; /* while it is busy, it owns this struct */
};

/*
 * CRC of eight bytes at a time: table[k] is a byte's effect when k more bytes follow it. Filled on first use; a race is harmless,
 * since the values are the same.
 */
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

/* ---- one section */

static struct dp_error *check(struct output *o, const struct dp_buf *raw)
{
	if (raw->failed)
		return dp_error_nomem();
	o->raw += raw->len;
	if (o->raw > DP_FILE_RAW_MAX)
		return dp_error(DP_TAG_OUTPUT,
		                "the snapshot exceeds the limit of %u MiB for a file: save less memory (--max-bytes)",
		                DP_FILE_RAW_MAX >> 20);
	return NULL;
}

static struct dp_error *compress(struct output *o, const struct dp_buf *raw, ZSTD_EndDirective how)
{
	struct dp_file_section *to = &o->section[o->n - 1];
	ZSTD_inBuffer in = {raw->data, raw->len, 0};
	size_t left = 1;
	DP_TRY(check(o, raw));
	while (in.pos < in.size || (how == ZSTD_e_end && left)) {
		uint8_t *room = dp_file_room(&o->file, ZSTD_CStreamOutSize());
		if (!room)
			return dp_error_nomem();
		ZSTD_outBuffer out = {room, ZSTD_CStreamOutSize(), 0};
		left = ZSTD_compressStream2(o->zstd, &out, &in, how);
		if (ZSTD_isError(left))
			return dp_error_nomem();
		to->crc = dp_file_crc(to->crc, room, out.pos);
		o->file.len += out.pos;
		to->size += out.pos;
	}
	to->raw += raw->len;
	return NULL;
}

static void begin_section(struct output *o, uint32_t tag, int level)
{
	o->section[o->n++] = (struct dp_file_section){.tag = tag, .flags = DP_FILE_ZSTD, .offset = o->file.len};
	ZSTD_CCtx_reset(o->zstd, ZSTD_reset_session_and_parameters);
	ZSTD_CCtx_setParameter(o->zstd, ZSTD_c_compressionLevel, level);
}

/* `raw`: the rest. An empty section is omitted. */
static struct dp_error *end_section(struct output *o, const struct dp_buf *raw)
{
	struct dp_file_section *s = &o->section[o->n - 1];
	if (!raw->len && !raw->failed && !s->raw) {
		o->n--;
		return NULL;
	}
	return compress(o, raw, ZSTD_e_end);
}

/* ---- all of them */

static void press(void *of, struct dp_buf *piece)
{
	struct output *o = of;
	if (!o->err)
		o->err = compress(o, piece, ZSTD_e_continue);
	piece->len = 0;
}

static void drain(struct dp_file_encoder *e)
{
	struct output *o = e->of;
	if (e->to->len >= PIECE)
		dp_press_give(&o->press, e->to);
}

static struct dp_error *add(struct output *o, struct dp_file_encoder *e, const struct dp_snapshot *s,
                            const struct dp_store_section *part)
{
	begin_section(o, part->tag, part->level);
	e->to->len = 0;
	dp_file_encode(e, s, part->first, part->last);
	dp_press_wait(&o->press);
	return o->err ? o->err : end_section(o, e->to);
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
	struct dp_file_encoder e = {.to = &raw, .strings = strings, .drain = drain, .of = o};
	dp_buf_grow(&o->file, HEAD);
	for (size_t i = 0; !err && i < dp_store_nsections; i++)
		err = add(o, &e, s, &dp_store_section[i]);
	dp_buf_fini(&raw);
	DP_TRY(err);
	begin_section(o, DP_FILE_STRINGS, DP_FILE_STRINGS_LEVEL);
	DP_TRY(end_section(o, dp_file_strings_bytes(strings)));
	if (o->file.failed)
		return dp_error_nomem();
	put_head(o);
	return NULL;
}

struct dp_error *dp_snapshot_write_bytes(struct dp_snapshot *s, struct dp_buf *ret)
{
	struct output o = {.zstd = ZSTD_createCCtx()};
	struct dp_file_strings *strings = dp_file_strings_create();
	dp_snapshot_settle(s);
	dp_press_init(&o.press, press, &o);
	struct dp_error *err = strings && o.zstd ? add_all(&o, s, strings) : dp_error_nomem();
	dp_press_fini(&o.press);
	dp_file_strings_destroy(strings);
	ZSTD_freeCCtx(o.zstd);
	if (err)
		dp_buf_fini(&o.file);
	else
		*ret = o.file;
	return err;
}
