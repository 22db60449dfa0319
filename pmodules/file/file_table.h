/* SPDX-License-Identifier: MIT */
/*
 * Tables of the model: which struct members are saved, their numbers in the file and their names in JSON. The reader, the writer
 * and the JSON export walk these tables, so adding a member takes one line. Never reuse a number (docs/snapshot-format.md).
 */
#ifndef DP_PMODULES_FILE_FILE_TABLE_H
#define DP_PMODULES_FILE_FILE_TABLE_H

#include "pmodules/model/snapshot.h"

enum dp_store_kind {
	DP_STORE_UINT,   /* unsigned of `size` bytes */
	DP_STORE_INT,    /* signed of `size` bytes; zigzag; omitted if equal to `usual` */
	DP_STORE_HEX,    /* uint64_t: an address */
	DP_STORE_NUMBER, /* uint64_t that may be large: a string in JSON */
	DP_STORE_BOOL,
	DP_STORE_CHAR, /* a letter; omitted if equal to `usual` */
	DP_STORE_ENUM, /* `words` names its values; unknown values read as `usual` */
	DP_STORE_REAL, /* double */
	DP_STORE_TEXT, /* never NULL */
	DP_STORE_TEXT_OR_NULL,
	DP_STORE_STRING, /* a variable's text with its text_size */
	DP_STORE_ID,     /* the snapshot's id */
	DP_STORE_TEXTS,  /* char *const *, NULL-terminated, never NULL */
	DP_STORE_TEXTS_OR_NULL,
	DP_STORE_WORDS,           /* list of dp_snap_word */
	DP_STORE_LIST,            /* list of `of` */
	DP_STORE_ARRAY,           /* pointer to `of`; their number is at `count` */
	DP_STORE_SUB,             /* pointer to one `of`, or NULL */
	DP_STORE_REGISTERS,       /* struct dp_frame_regs itself */
	DP_STORE_FRAME_REGISTERS, /* pointer to them; may be shared with the previous frame */
	DP_STORE_BLOB,            /* pointer to bytes; their number (uint64_t) is at `count` */
};

struct dp_store_record;
struct dp_store_row {
	uint8_t number; /* in the file: 1 .. */
	uint8_t keep;   /* enum dp_store_kind */
	bool always;    /* in JSON even if it has its usual value */
	uint8_t size;
	int8_t usual;
	uint16_t offset, count;
	const char *name; /* in JSON */
	const struct dp_store_record *of;
	const char *const *words; /* NULL-terminated */
};

enum dp_store_link { DP_LINK_NONE, DP_LINK_THREAD, DP_LINK_FRAME, DP_LINK_VARIABLE };
struct dp_store_record {
	const char *name; /* in the documentation and in messages */
	const struct dp_store_row *row;
	size_t n, size;
	enum dp_store_link link; /* kind of its back pointers */
};

/* Which rows are in which section of the file. The sections together are one record. */
#define DP_SECTION(a, b, c, d) ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)
struct dp_store_section {
	uint32_t tag;
	uint8_t first, last; /* row numbers of the snapshot */
	int level;           /* zstd compression level */
};
extern const struct dp_store_section dp_store_section[];
extern const size_t dp_store_nsections;

extern const struct dp_store_record dp_store_snapshot, dp_store_thread, dp_store_frame, dp_store_variable, dp_store_note,
        dp_store_pair, dp_store_kframe, dp_store_siginfo, dp_store_map, dp_store_object, dp_store_file, dp_store_limit,
        dp_store_memory, dp_store_source;

/* Trees deeper than this are cut; what is cut is counted in `more`. */
#define DP_STORE_DEPTH 200u

#endif
