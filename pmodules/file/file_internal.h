/* SPDX-License-Identifier: MIT */
/* Shared by the snapshot file's reader and writer. */
#ifndef DP_PMODULES_FILE_FILE_INTERNAL_H
#define DP_PMODULES_FILE_FILE_INTERNAL_H

#include "base/buf.h"
#include "pmodules/file/file.h"
#include "pmodules/file/file_table.h"

#include <string.h>

/* The file header, followed by the section table. All numbers are little-endian. */
#define DP_FILE_MAGIC                                                                                                            \
	"\x89"                                                                                                                   \
	"DPS\r\n\x1a\n"
#define DP_FILE_VERSION 1u
struct dp_file_header {
	char magic[8];
	uint16_t version, minor; /* other version: incompatible. Greater minor: compatible additions */
	uint32_t nsections;
	uint32_t crc; /* of the header with crc = 0, and the table */
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
	DP_FILE_NEEDED = 1u << 1, /* a reader that does not know the section must reject the file */
};
#define DP_FILE_STRINGS      DP_SECTION('S', 'T', 'R', 'S')
#define DP_FILE_SECTIONS_MAX 256u
/* Limits: all sections together, uncompressed; the file; the strings. */
#define DP_FILE_RAW_MAX     (384u << 20)
#define DP_FILE_MAX         (512u << 20)
#define DP_FILE_STRINGS_MAX (8u << 20)
enum { DP_FILE_STRINGS_LEVEL = 3 }; /* zstd compression level */

uint32_t dp_file_crc(uint32_t crc, const void *bytes, size_t n);

/* The wire types of Protocol Buffers. */
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

enum { DP_VARINT_MAX = 18 }; /* ten bytes, plus what may be written past the end */
/*
 * Writes a varint, seven bits a byte; returns its end. May write up to seven bytes past that. Most numbers are addresses, so
 * eight groups of bits are spread at once, and the top bit is set in all bytes but the last.
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
/* The number of a text: 0 for NULL, else 1, 2, ... in the order of the section. */
uint32_t dp_file_string(struct dp_file_strings *t, const char *text, size_t n);
/* The same for a NUL-terminated text. Cached by pointer: the text must not change. */
uint32_t dp_file_text(struct dp_file_strings *t, const char *text);
/* The encoded section. */
struct dp_buf *dp_file_strings_bytes(struct dp_file_strings *t);

struct dp_file_encoder {
	struct dp_buf *to;
	struct dp_file_strings *strings;
	unsigned level; /* nesting of records */
	unsigned depth; /* of variables */
	bool by_table;  /* encode variables by the table too; tests compare this with the special code */
	/* Called between two records of the snapshot itself; may take the contents of `to`. */
	void (*drain)(struct dp_file_encoder *e);
	void *of;
};
/* Encodes the snapshot's rows first to last. */
void dp_file_encode(struct dp_file_encoder *e, const struct dp_snapshot *s, uint8_t first, uint8_t last);

/* Makes room for at most n bytes, so that a writer checks once. NULL: out of memory; `to` has failed. */
static inline uint8_t *dp_file_room(struct dp_buf *to, size_t n)
{
	if (to->cap - to->len <= n && !to->failed) {
		const size_t len = to->len;
		dp_buf_grow(to, n);
		to->len = len;
	}
	return to->failed ? NULL : to->data + to->len;
}

/* Stores a record's length in front of it, at `begin`, where `guess` bytes were reserved. */
void dp_file_close(struct dp_buf *to, size_t begin, size_t guess);
void dp_file_put_number(struct dp_file_encoder *e, unsigned number, uint64_t v);
void dp_file_put_notes(struct dp_file_encoder *e, unsigned number, const struct dp_snap_note *list);
/* file_variable.c: variables are nearly all of a snapshot, so they have special code. */
void dp_file_put_variables(struct dp_file_encoder *e, unsigned number, const struct dp_snap_variable *list);

/* ---- reading */
struct dp_file_text {
	uint32_t at, n;
};
struct dp_file_texts {
	char *bytes; /* in the snapshot's arena; each text has a NUL after it */
	struct dp_file_text *text;
	size_t n;
};
struct dp_error *dp_file_decode_texts(struct dp_snapshot *s, const uint8_t *bytes, size_t n,
                                      struct dp_file_texts *ret) DP_MUST_CHECK;
/* Decodes one section, which is part of the snapshot's record. `section`: its name, for messages. */
struct dp_error *dp_file_decode(struct dp_snapshot *s, const struct dp_file_texts *texts, const char *section,
                                const uint8_t *bytes, size_t n) DP_MUST_CHECK;

#endif
