/* SPDX-License-Identifier: MIT */
/* Where an object is: in memory, in registers, a constant, in pieces of these, or nowhere. */
#ifndef DP_PROBES_STORAGE_H
#define DP_PROBES_STORAGE_H

#include "probes/record/expr_build.h"

#include <elfutils/libdw.h>

enum dp_piece_kind {
	DP_PIECE_MEMORY, /* at the address `expr` */
	DP_PIECE_VALUE,  /* in the 64-bit value `expr`, little-endian */
	DP_PIECE_NONE,   /* `absent` says why */
};
struct dp_piece {
	enum dp_piece_kind kind;
	uint64_t size; /* bytes; UINT64_MAX: all of it */
	struct dp_expr *expr;
	const char *absent;
	/* NONE, of a pointer that the compiler did without: what it would point to, by this attribute (a location or a constant), and where in that. */
	bool is_implicit;
	Dwarf_Attribute target;
	int64_t inside;
};
struct dp_storage {
	struct dp_piece *piece;
	size_t n;
	uint64_t offset; /* of the part that is meant */
};

struct dp_storage dp_storage_memory(struct dp_arena *a, struct dp_expr *addr);
struct dp_storage dp_storage_value(struct dp_arena *a, struct dp_expr *value, uint64_t size);
struct dp_storage dp_storage_none(struct dp_arena *a, const char *absent);
/* Adds a piece behind the others. */
void dp_storage_add(struct dp_arena *a, struct dp_storage *s, struct dp_piece piece);
/* The `size` (1, 2, 4, 8) bytes at the storage's offset, extended; NULL and *absent if they are not there. */
struct dp_expr *dp_storage_read(struct dp_arena *a, const struct dp_storage *s, uint64_t size, bool is_signed,
                                const char **absent);
/* `bits` bits from bit `bit` on. */
struct dp_expr *dp_storage_bits(struct dp_arena *a, const struct dp_storage *s, uint64_t bit, uint64_t bits, bool is_signed,
                                const char **absent);
/* The address of the part that is meant; NULL and *absent if it is not in memory. */
struct dp_expr *dp_storage_address(struct dp_arena *a, const struct dp_storage *s, const char **absent);

/* The same, if all of its `size` bytes are in memory there. */
struct dp_expr *dp_storage_whole(struct dp_arena *a, const struct dp_storage *s, uint64_t size, const char **absent);

#define DP_ABSENT_OPTIMIZED "optimized out"
#define DP_ABSENT_NOT_SET   "not set yet"
#define DP_ABSENT_BEGINS    "an inlined function begins at this very instruction: probe it by its name"
#define DP_ABSENT_GONE      "no longer there"
#define DP_ABSENT_UNKNOWN   "its place is described in terms that dynprobe does not know"
#define DP_ABSENT_POINTER   "optimized out: it points at a value that has no address"
#define DP_ABSENT_CIRCLE    "what describes its place goes in a circle"
#define DP_ABSENT_ENDLESS   "what describes its place takes too many steps"
#define DP_ABSENT_DIVIDES   "what describes its place divides by 0"

#endif
