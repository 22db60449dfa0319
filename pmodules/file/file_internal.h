/* SPDX-License-Identifier: MIT */
/* Between the parts of the snapshot file's reader and writer. */
#ifndef DP_PMODULES_FILE_INTERNAL_H
#define DP_PMODULES_FILE_INTERNAL_H

#include "base/buf.h"
#include "pmodules/file/file.h"
#include "pmodules/file/file_table.h"

#include <string.h>

/* The header, the table behind it; all numbers are little-endian. */
#define DP_FILE_MAGIC                                                                                                            \
	"\x89"                                                                                                                   \
	"DPS\r\n\x1a\n"
#define DP_FILE_VERSION 1u
struct dp_file_header {
	char magic[8];
	uint16_t version, minor; /* another version: another file. A greater minor: more of the same kind */
	uint32_t nsections;
	uint32_t crc; /* of the header, this being 0, and the table */
	uint32_t zero;
};
struct dp_file_section {
	uint32_t tag, flags;
	uint64_t offset, size; /* in the file */
	uint64_t raw;          /* uncompressed */
	uint32_t crc, zero;    /* of the bytes in the file */
};
enum {
	DP_FILE_ZSTD = 1u << 0,   /* one frame of zstd */
	DP_FILE_NEEDED = 1u << 1, /* a reader that does not know it cannot make sense of the file */
};
#define DP_FILE_STRINGS      DP_SECTION('S', 'T', 'R', 'S')
#define DP_FILE_SECTIONS_MAX 256u
/* Of all sections together, uncompressed; and of the file. */
#define DP_FILE_RAW_MAX     (384u << 20)
#define DP_FILE_MAX         (512u << 20)
#define DP_FILE_STRINGS_MAX (8u << 20)
enum { DP_FILE_STRINGS_LEVEL = 3 }; /* of compression */

uint32_t dp_file_crc(uint32_t crc, const void *bytes, size_t n);

/* What is a field's number and how its value is written, as Protocol Buffers have it. */
enum dp_wire { DP_WIRE_VARINT = 0, DP_WIRE_8 = 1, DP_WIRE_BYTES = 2, DP_WIRE_4 = 5 };

static inline void *dp_file_load(const void *obj, size_t offset)
{
	void *p;
	memcpy(&p, (const char *)obj + offset, sizeof(p));
	return p;
}

static inline void dp_file_store(void *obj, size_t offset, const void *p)
{
	memcpy((char *)obj + offset, &p, sizeof(p));
}

/* ---- writing: strings get their numbers while records are encoded */

enum { DP_VARINT_MAX = 18 }; /* ten, and what may be written behind */
/*
 * Seven bits to a byte; the end of the number is returned, behind which up to seven bytes may have been written. Addresses are
 * most of what a snapshot has: eight groups of bits are moved apart at once, and the top bit is set in all bytes but the last.
 */
static inline uint8_t *dp_file_varint(uint8_t *p, uint64_t v)
{
	if (v < 0x80) {
		*p = (uint8_t)v;
		return p + 1;
	}
	for (; v >> 56; v >>= 7)
		*p++ = (uint8_t)(v | 0x80);
	v = (v & 0x00fffffff0000000) << 4 | (v & 0x000000000fffffff);
	v = (v & 0x0fffc0000fffc000) << 2 | (v & 0x00003fff00003fff);
	v = (v & 0x3f803f803f803f80) << 1 | (v & 0x007f007f007f007f);
	const unsigned last = (63 - (unsigned)__builtin_clzll(v | 1)) / 8;
	v |= 0x8080808080808080 & ((1ull << 8 * last) - 1);
	memcpy(p, &v, sizeof(v));
	return p + last + 1;
}

struct dp_file_strings; /* opaque */
struct dp_file_strings *dp_file_strings_create(void);
struct dp_file_strings *dp_file_strings_destroy(struct dp_file_strings *t);
/* The number of a text: 0 is none (NULL), then 1 .. in the order of the section. */
uint32_t dp_file_string(struct dp_file_strings *t, const char *text, size_t n);
/* The same of one that ends with a NUL: a pointer that has been asked about is known. It must not change in between. */
uint32_t dp_file_text(struct dp_file_strings *t, const char *text);
/* The section. */
struct dp_buf *dp_file_strings_bytes(struct dp_file_strings *t);

struct dp_file_encoder {
	struct dp_buf *to;
	struct dp_file_strings *strings;
	unsigned level; /* of records in records */
	unsigned depth; /* of variables */
	bool by_table;  /* variables too; what their own code is held against */
	/* Called between two records of the snapshot itself: whoever has one may take what is in `to`. */
	void (*drain)(struct dp_file_encoder *e);
	void *of;
};
/* The rows first .. last of the snapshot. */
void dp_file_encode(struct dp_file_encoder *e, const struct dp_snapshot *s, uint8_t first, uint8_t last);

/* Writers of single things know how much room they need at most, and ask for it once. NULL: there is none, and `to` has failed.
 */
static inline uint8_t *dp_file_room(struct dp_buf *to, size_t n)
{
	if (to->cap - to->len <= n && !to->failed) {
		const size_t len = to->len;
		dp_buf_grow(to, n);
		to->len = len;
	}
	return to->failed ? NULL : to->data + to->len;
}

/* A record's length stands in front of it and is known behind it: room for `guess` bytes was left at `begin`. */
void dp_file_close(struct dp_buf *to, size_t begin, size_t guess);
void dp_file_put_number(struct dp_file_encoder *e, unsigned number, uint64_t v);
void dp_file_put_notes(struct dp_file_encoder *e, unsigned number, const struct dp_snap_note *list);
/* file_variable.c: nearly all of a snapshot is variables, and they are written by code of their own. */
void dp_file_put_variables(struct dp_file_encoder *e, unsigned number, const struct dp_snap_variable *list);

/* ---- reading */
struct dp_file_text {
	uint32_t at, n;
};
struct dp_file_texts {
	char *bytes; /* of the snapshot's arena; a NUL behind every text */
	struct dp_file_text *text;
	size_t n;
};
struct dp_error *dp_file_decode_texts(struct dp_snapshot *s, const uint8_t *bytes, size_t n,
                                      struct dp_file_texts *ret) DP_MUST_CHECK;
/* One section's part of the record. `section`: its name, for messages. */
struct dp_error *dp_file_decode(struct dp_snapshot *s, const struct dp_file_texts *texts, const char *section,
                                const uint8_t *bytes, size_t n) DP_MUST_CHECK;

#endif
