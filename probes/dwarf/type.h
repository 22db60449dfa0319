/* SPDX-License-Identifier: MIT */
/* C's types, from the debug information or made by the expression language. */
#ifndef DP_PROBES_DWARF_TYPE_H
#define DP_PROBES_DWARF_TYPE_H

#include "base/arena.h"
#include "probes/debug/debug.h"
#include "probes/record/fields.h"

enum dp_ctype_kind {
	DP_CTYPE_VOID,
	DP_CTYPE_INT, /* integers, characters, bool, enumerations */
	DP_CTYPE_FLOAT,
	DP_CTYPE_POINTER, /* also references */
	DP_CTYPE_ARRAY,
	DP_CTYPE_RECORD, /* struct, union, class */
	DP_CTYPE_OTHER,  /* no computation: functions, long double, complex numbers, __int128 (`look` is set for the second and
	                  * the last) */
};
struct dp_ctype {
	enum dp_ctype_kind kind;
	uint64_t size; /* bytes; 0 if unknown */
	bool is_signed, is_bool, is_char, is_enum, is_reference, is_union;
	bool is_word;              /* a register: 64 bits, signed, whatever the other operand is */
	bool is_long_double;       /* OTHER: x87 */
	enum dp_display display;   /* of the language's own types; OTHER: of 16-byte types that can be shown
	                            * (dp_ctype_is_wide()) */
	const struct dp_ctype *to; /* POINTER, ARRAY; if NULL use dp_ctype_to() */
	uint64_t count;            /* ARRAY; 0 if unknown */
	Dwarf_Die die;             /* its debug entry; addr NULL for the language's own types */
	const char *name;          /* for messages */
};

extern const struct dp_ctype dp_ctype_int, dp_ctype_uint, dp_ctype_long, dp_ctype_ulong, dp_ctype_word, dp_ctype_char,
        dp_ctype_double, dp_ctype_float, dp_ctype_void, dp_ctype_bool, dp_ctype_void_pointer;
/* The types of a system call's result and number. */
extern const struct dp_ctype dp_ctype_result, dp_ctype_call;

/* The type of entry `die` (DW_AT_type); `void` if it has none. NULL when out of memory. */
const struct dp_ctype *dp_ctype_of(struct dp_arena *arena, Dwarf_Die *die);
/* The type that entry `die` describes. */
const struct dp_ctype *dp_ctype_from(struct dp_arena *arena, Dwarf_Die *die);
/* The target of a pointer, or the element type of an array. */
const struct dp_ctype *dp_ctype_to(struct dp_arena *arena, const struct dp_ctype *type);
const struct dp_ctype *dp_ctype_pointer(struct dp_arena *arena, const struct dp_ctype *to);
const struct dp_ctype *dp_ctype_array(struct dp_arena *arena, const struct dp_ctype *element, uint64_t count);
/* A basic C type by its words ("unsigned long int", "uint32_t"), or NULL. */
const struct dp_ctype *dp_ctype_plain(const char *name);
static inline bool dp_ctype_is_scalar(const struct dp_ctype *t)
{
	return t->kind == DP_CTYPE_INT || t->kind == DP_CTYPE_FLOAT || t->kind == DP_CTYPE_POINTER;
}

/* True for 128-bit integers and long double: they can be shown, but not computed with. */
static inline bool dp_ctype_is_wide(const struct dp_ctype *t)
{
	return t->kind == DP_CTYPE_OTHER && t->display != DP_DISPLAY_NUMBER;
}
/* OTHER: why its values cannot be read; a static text. */
const char *dp_ctype_unread(const struct dp_ctype *t);

/* A member of a record, also of its bases and unnamed members. */
struct dp_member {
	Dwarf_Die die;
	uint64_t offset;    /* bytes from the record's start */
	uint64_t bit, bits; /* bits: 0, or width of a bit-field that starts `bit` bits after `offset` */
	const struct dp_ctype *type;
	const char *name;
	/* In a virtual base: `offset` counts from that base. The object at offset `before` has the base's location at run
	 * time. */
	bool is_virtual;
	uint64_t before;
	Dwarf_Die base; /* addr NULL: location unknown */
};
bool dp_ctype_member(struct dp_arena *arena, const struct dp_ctype *record, const char *name, struct dp_member *ret);
/* Calls `each` for every direct member until it returns false. Bases are members without a name. */
void dp_ctype_members(struct dp_arena *arena, const struct dp_ctype *record, bool (*each)(const struct dp_member *m, void *data),
                      void *data);

/* type_format.c: the type in C or C++ syntax; an array of it; its base without pointers, arrays and qualifiers. In the arena;
 * never NULL. */
const char *dp_type_format(struct dp_arena *arena, Dwarf_Die *type);
const char *dp_type_format_array(struct dp_arena *arena, Dwarf_Die *element, const uint64_t *count, size_t n);
const char *dp_type_format_base(struct dp_arena *arena, Dwarf_Die *type);

/* ---- debug entries ---- */

/* The entry's type; false for void. */
bool dp_die_type(Dwarf_Die *die, Dwarf_Die *ret);
/* Resolves typedefs and qualifiers; false for void. */
bool dp_die_peel(Dwarf_Die *die);
/* One dimension of an array. If unknown it may be computed at run time. */
struct dp_dimension {
	uint64_t n;
	bool is_known, is_dynamic;
};
struct dp_dimension dp_die_dimension(Dwarf_Die *subrange);
/* True if the enumeration is signed, by its type or a negative value. Sets a *size of 0 to the underlying type's size. */
bool dp_die_enumeration_is_signed(Dwarf_Die *die, uint64_t *size);
/* An enumerator's value, extended. */
bool dp_die_enumerator(Dwarf_Die *die, bool is_signed, uint64_t *ret);
/* An unsigned constant attribute, also from the abstract origin. */
bool dp_die_unsigned(Dwarf_Die *die, unsigned attribute, uint64_t *ret);
bool dp_die_signed(Dwarf_Die *die, unsigned attribute, int64_t *ret);
/* True for a C unit, where type tags need their keyword and enumerators are ints. */
bool dp_die_unit_is_c(Dwarf_Die *unit);
bool dp_die_flag(Dwarf_Die *die, unsigned attribute);

#endif
