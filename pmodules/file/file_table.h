/* SPDX-License-Identifier: MIT */
/*
 * Tables of the model: which struct members are saved, their numbers in the file and their names in JSON. The reader, the writer
 * and the JSON export walk these tables, so adding a member takes one line. Never reuse a number (docs/snapshot-format.md).
 */
#ifndef DP_PMODULES_FILE_TABLE_H
#define DP_PMODULES_FILE_TABLE_H

#include "pmodules/model/snapshot.h"

enum dp_keep_kind {
	DP_KEEP_UINT,   /* unsigned of `size` bytes */
	DP_KEEP_INT,    /* signed of `size` bytes; zigzag; omitted if equal to `usual` */
	DP_KEEP_HEX,    /* uint64_t: an address */
	DP_KEEP_NUMBER, /* uint64_t that may be large: a string in JSON */
	DP_KEEP_BOOL,
	DP_KEEP_CHAR, /* a letter; omitted if equal to `usual` */
	DP_KEEP_ENUM, /* `words` names its values; unknown values read as `usual` */
	DP_KEEP_REAL, /* double */
	DP_KEEP_TEXT, /* never NULL */
	DP_KEEP_TEXT_OR_NULL,
	DP_KEEP_STRING, /* a variable's text with its text_size */
	DP_KEEP_ID,     /* the snapshot's id */
	DP_KEEP_TEXTS,  /* char *const *, NULL-terminated, never NULL */
	DP_KEEP_TEXTS_OR_NULL,
	DP_KEEP_WORDS,           /* list of dp_snap_word */
	DP_KEEP_LIST,            /* list of `of` */
	DP_KEEP_ARRAY,           /* pointer to `of`; their number is at `count` */
	DP_KEEP_SUB,             /* pointer to one `of`, or NULL */
	DP_KEEP_REGISTERS,       /* struct dp_snap_registers itself */
	DP_KEEP_FRAME_REGISTERS, /* pointer to them; may be shared with the previous frame */
	DP_KEEP_BLOB,            /* pointer to bytes; their number (uint64_t) is at `count` */
};

struct dp_keep_record;
struct dp_keep_row {
	uint8_t number; /* in the file: 1 .. */
	uint8_t keep;   /* enum dp_keep_kind */
	bool always;    /* in JSON even if it has its usual value */
	uint8_t size;
	int8_t usual;
	uint16_t offset, count;
	const char *name; /* in JSON */
	const struct dp_keep_record *of;
	const char *const *words; /* NULL-terminated */
};

enum dp_keep_link { DP_LINK_NONE, DP_LINK_THREAD, DP_LINK_FRAME, DP_LINK_VARIABLE };
struct dp_keep_record {
	const char *name; /* in the documentation and in messages */
	const struct dp_keep_row *row;
	size_t n, size;
	enum dp_keep_link link; /* kind of its back pointers */
};

/* Which rows are in which section of the file. The sections together are one record. */
#define DP_SECTION(a, b, c, d) ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)
struct dp_keep_section {
	uint32_t tag;
	uint8_t first, last; /* row numbers of the snapshot */
	int level;           /* zstd compression level */
};
extern const struct dp_keep_section dp_keep_section[];
extern const size_t dp_keep_nsections;

extern const struct dp_keep_record dp_keep_snapshot, dp_keep_thread, dp_keep_frame, dp_keep_variable, dp_keep_note, dp_keep_pair,
        dp_keep_kframe, dp_keep_siginfo, dp_keep_map, dp_keep_object, dp_keep_file, dp_keep_limit, dp_keep_memory, dp_keep_source;

/* Trees deeper than this are cut; what is cut is counted in `more`. */
#define DP_KEEP_DEPTH 200u

#endif
