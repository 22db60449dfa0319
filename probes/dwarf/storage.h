/* SPDX-License-Identifier: MIT */
/* Describes where an object is: in memory, in registers, a constant, in pieces of these, or nowhere. */
#ifndef DP_PROBES_DWARF_STORAGE_H
#define DP_PROBES_DWARF_STORAGE_H

#include "probes/record/expr_build.h"

#include <elfutils/libdw.h>

#include <elfutils/libdw.h>

enum dp_piece_kind {
	DP_PIECE_MEMORY, /* at address `expr` */
	DP_PIECE_VALUE,  /* in the 64-bit value `expr`, little-endian */
	DP_PIECE_NONE,   /* no value: `absent` says why */
};
struct dp_piece {
	enum dp_piece_kind kind;
	uint64_t size; /* bytes; UINT64_MAX: the whole object */
	struct dp_expr *expr;
	const char *absent;
	/* NONE: an optimized-out pointer to offset `inside` of the object that `target` (a location or a constant) describes. */
	bool is_implicit;
	Dwarf_Attribute target;
	int64_t inside;
};
struct dp_storage {
	struct dp_piece *piece;
	size_t n;
	uint64_t offset; /* of the part that is used */
};

struct dp_storage dp_storage_memory(struct dp_arena *a, struct dp_expr *addr);
struct dp_storage dp_storage_value(struct dp_arena *a, struct dp_expr *value, uint64_t size);
struct dp_storage dp_storage_none(struct dp_arena *a, const char *absent);
/* Appends a piece. */
void dp_storage_add(struct dp_arena *a, struct dp_storage *s, struct dp_piece piece);
/* Reads `size` (1, 2, 4, 8) bytes at the storage's offset, extended. NULL and *absent if they have no value. */
struct dp_expr *dp_storage_read(struct dp_arena *a, const struct dp_storage *s, uint64_t size, bool is_signed,
                                const char **absent);
/* Reads `bits` bits, starting at bit `bit`. */
struct dp_expr *dp_storage_bits(struct dp_arena *a, const struct dp_storage *s, uint64_t bit, uint64_t bits, bool is_signed,
                                const char **absent);
/* The address of the used part; NULL and *absent if it is not in memory. */
struct dp_expr *dp_storage_address(struct dp_arena *a, const struct dp_storage *s, const char **absent);

/* The same, if all `size` bytes are in memory. */
struct dp_expr *dp_storage_whole(struct dp_arena *a, const struct dp_storage *s, uint64_t size, const char **absent);

#define DP_ABSENT_OPTIMIZED "optimized out"
#define DP_ABSENT_NOT_SET   "not set yet"
#define DP_ABSENT_BEGINS    "an inlined function starts at this instruction: probe it by its name"
#define DP_ABSENT_GONE      "no longer there"
#define DP_ABSENT_UNKNOWN   "dynprobe does not support the description of its location"
#define DP_ABSENT_POINTER   "optimized out: it points at a value that has no address"
#define DP_ABSENT_CALLERS   "optimized out: only the function's callers know it"
#define DP_ABSENT_CIRCLE    "the description of its location is circular"
#define DP_ABSENT_ENDLESS   "the description of its location takes too many steps"
#define DP_ABSENT_DIVIDES   "the description of its location divides by 0"
/* The value of a DW_AT_const_value. */
struct dp_storage dp_storage_constant(struct dp_arena *a, Dwarf_Attribute *attr);

#endif
