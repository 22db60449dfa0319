/* SPDX-License-Identifier: MIT */
/* Fields: the one description of a record's payload. */
#ifndef DP_PROBES_RECORD_FIELDS_H
#define DP_PROBES_RECORD_FIELDS_H

#include "base/addr.h"
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum dp_type {
	DP_TYPE_INT,   /* size 1, 2, 4, 8; signed */
	DP_TYPE_UINT,
	DP_TYPE_FLOAT, /* size 4, 8 */
	DP_TYPE_POINTER,   /* uint64_t, hexadecimal */
	DP_TYPE_STRING,    /* NUL-terminated, at most `size` bytes including the NUL */
	DP_TYPE_BYTES,     /* `size` bytes */
	DP_TYPE_BACKTRACE, /* uint8_t n, n x uint64_t; at most `size` frames */
};

enum dp_source_kind {
	DP_SRC_REG,    /* general register `reg` (0-15 as in struct dp_regs), `size` bytes from bit `shift` (0, or 8 for ah) */
	DP_SRC_RIP,    /* the site's address: a constant */
	DP_SRC_RFLAGS,
	DP_SRC_XMM,    /* low 128 bits of xmm register `reg` (0-15) */
	DP_SRC_MEMORY, /* `size` bytes at `addr` in the target; may be unreadable */
	DP_SRC_STRING, /* at `addr`, up to a NUL or its `count`; may be unreadable */
	DP_SRC_UNWIND,
	DP_SRC_PARK,   /* id of the hit's snapshot, for which its thread waits; 0 if none was taken */
	DP_SRC_EXPR,   /* `size` bytes of the value of `expr`; may be unreadable */
	DP_SRC_NONE,   /* known to have no value before any hit: `absent` says why. Zeros in the payload, its mask bit is always
	                * set */
};

struct dp_enumerator { /* a name of a value */
	uint64_t value; /* sign-extended */
	const char *name;
};
struct dp_enumeration { /* the enumerators of one enum, in one allocation */
	const struct dp_enumerator *item;
	size_t n;
	bool flags; /* values are combinations (or) of the names */
};
enum dp_display { /* how an integer is displayed */
	DP_DISPLAY_NUMBER,
	DP_DISPLAY_BOOL,
	DP_DISPLAY_CHAR,
	DP_DISPLAY_RESULT, /* a system call's result: -4095 to -1 are errors, shown by name */
	DP_DISPLAY_CALL,   /* a system call's number, shown by name */
	/* DP_TYPE_BYTES of 16 bytes, for types that records do not have. */
	DP_DISPLAY_INT128,
	DP_DISPLAY_UINT128,
	DP_DISPLAY_LONG_DOUBLE, /* x87: 80 bits and padding */
	DP_DISPLAY_DURATION,    /* ns; traces have these numbers, so new ones come last */
};
static inline bool dp_display_is_wide(enum dp_display d)
{
	return d >= DP_DISPLAY_INT128 && d <= DP_DISPLAY_LONG_DOUBLE;
}

struct dp_field {
	char *name; /* a C identifier, unique in its table */
	enum dp_type type;
	uint32_t size; /* see enum dp_type */
	bool hex;      /* print integers in base 16 */
	enum dp_source_kind source;
	uint8_t reg, shift;
	dp_addr addr;
	/* Fields that come from an expression. */
	struct dp_expr *expr;          /* DP_SRC_EXPR: the value; DP_SRC_MEMORY, DP_SRC_STRING: the address, instead of `addr`.
	                                * Owned */
	struct dp_expr *high;          /* DP_SRC_EXPR of 16 bytes: the upper eight, as `expr` is the lower; neither may fail.
	                                * Owned */
	struct dp_expr *count;         /* DP_SRC_STRING: its length in bytes, or NULL: up to the NUL. Owned */
	bool count_is_signed;
	bool is_array;                 /* DP_SRC_STRING: no pointer leads to it, so it is never NULL */
	char *label;                   /* display name ("req->len"), or NULL for `name`. Owned */
	const struct dp_enumeration *names; /* enumerators, or NULL. Owned */
	enum dp_display display;
	const char *absent;            /* DP_SRC_NONE: reason, such as "optimized out"; a static text */
};

struct dp_fields {
	struct dp_field *field;
	size_t n;
};

/*
 * Adds the fields of one -t argument: `regs`, `reg:NAME`, `TYPE:NAME:ADDR`, `backtrace[:DEPTH]` (default 32). The same field
 * twice is added once; two different fields with one name are an error. A failed call adds nothing.
 */
/*
 * Internal: the field of a call's number, by which the events of its entry and its return are one (output/events/joiner.c). It is
 * the first field of both.
 */
#define DP_NAME_CALL        "dynprobe_call"
#define DP_CONTEXT_WHOLE    DP_NAME_CALL "=$" DP_NAME_CALL
#define DP_CONTEXT_SNAPSHOT "$snapshot" /* internal: the context of --snapshot */
struct dp_error *dp_fields_add(struct dp_fields *fields, const char *context) DP_MUST_CHECK;
void dp_fields_fini(struct dp_fields *fields);
/* Whether records of one can be read and shown as those of the other: only where the values come from may differ. */
bool dp_fields_alike(const struct dp_fields *a, const struct dp_fields *b);
/* True if the value may be unreadable; the field then has a bit in the mask. */
bool dp_field_may_fault(const struct dp_field *field);
/* True if a field may be unreadable. The payload then starts with the mask (agent/abi.h). */
bool dp_fields_may_fault(const struct dp_fields *fields);
bool dp_fields_unwind(const struct dp_fields *fields);
bool dp_fields_park(const struct dp_fields *fields);
/* True if a field needs all general registers (backtrace, snapshot). */
bool dp_fields_registers(const struct dp_fields *fields);
/* Upper bound of the payload in bytes, mask included. */
size_t dp_fields_max_payload(const struct dp_fields *fields);

/* A decoded value. Pointers point into the payload. */
struct dp_field_value {
	bool unreadable;
	bool is_null; /* of a string, which is `unreadable` then: its pointer is NULL */
	uint64_t u;  /* integers (sign-extended), pointers, raw bits of floats */
	double f;    /* DP_TYPE_FLOAT */
	const uint8_t *bytes; /* strings (NUL-terminated), bytes, backtraces (unaligned uint64_t[n]) */
	size_t n;    /* bytes, characters or frames */
};
/*
 * Walks a payload and calls `each` for every field in table order. False if the payload is damaged (shorter than its fields): the
 * target can write to the shared memory, so nothing in it is trusted.
 */
bool dp_fields_decode(const struct dp_fields *fields, const uint8_t *payload, size_t len,
		      void (*each)(const struct dp_field *field, const struct dp_field_value *value, void *data), void *data);
/*
 * The same for many payloads of one table: what only depends on the fields is worked out once. Valid while the table does not
 * change; owns nothing.
 */
struct dp_decoder {
	const struct dp_fields *fields;
	uint64_t may_fault; /* bit i: field i may be unreadable */
	size_t fixed;       /* bytes of every payload, or SIZE_MAX: a field's length varies */
	bool masked;        /* a payload starts with the mask */
};
void dp_decoder_init(struct dp_decoder *d, const struct dp_fields *fields);
bool dp_decoder_run(const struct dp_decoder *d, const uint8_t *payload, size_t len,
                    void (*each)(const struct dp_field *field, const struct dp_field_value *value, void *data), void *data);
/* As dp_fields_payload_length(). */
size_t dp_decoder_length(const struct dp_decoder *d, const uint8_t *payload, size_t len);
/* Number of bytes of `payload` that the fields use, SIZE_MAX if it is damaged. The rest is padding. */
size_t dp_fields_payload_length(const struct dp_fields *fields, const uint8_t *payload, size_t len);

#endif
