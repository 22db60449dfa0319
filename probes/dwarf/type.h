/* SPDX-License-Identifier: MIT */
/* C's types as the debug information has them, and those that the language makes itself. */
#ifndef DP_PROBES_TYPE_H
#define DP_PROBES_TYPE_H

#include "base/arena.h"
#include "probes/debug/debug.h"

enum dp_ctype_kind {
	DP_CTYPE_VOID,
	DP_CTYPE_INT, /* integers, characters, bool, enumerations */
	DP_CTYPE_FLOAT,
	DP_CTYPE_POINTER, /* references too */
	DP_CTYPE_ARRAY,
	DP_CTYPE_RECORD, /* struct, union, class */
	DP_CTYPE_OTHER,  /* what expressions do not compute with: functions, long double, complex numbers, __int128 (the second and the last: `look`) */
};
struct dp_ctype {
	enum dp_ctype_kind kind;
	uint64_t size; /* bytes; 0 if unknown */
	bool is_signed, is_bool, is_char, is_enum, is_reference, is_union;
	bool is_word;              /* a register: 64 bits, signed, whatever it is combined with */
	bool is_long_double;       /* OTHER: the x87's */
	enum dp_look look;         /* of the language's own; OTHER: of sixteen bytes that can be shown (dp_ctype_is_wide()) */
	const struct dp_ctype *to; /* POINTER, ARRAY; NULL: see dp_ctype_to() */
	uint64_t count;            /* ARRAY; 0 if unknown */
	Dwarf_Die die;             /* where it comes from; addr NULL for the language's own */
	const char *name;          /* what messages call it */
};

extern const struct dp_ctype dp_ctype_int, dp_ctype_uint, dp_ctype_long, dp_ctype_ulong, dp_ctype_word, dp_ctype_char,
        dp_ctype_double, dp_ctype_float, dp_ctype_void, dp_ctype_bool, dp_ctype_void_pointer;
/* A system call's result, and its number. */
extern const struct dp_ctype dp_ctype_result, dp_ctype_call;

/* The type that the entry `die` has (DW_AT_type); `void` if it has none. NULL without memory. */
const struct dp_ctype *dp_ctype_of(struct dp_arena *arena, Dwarf_Die *die);
/* The type that `die` is. */
const struct dp_ctype *dp_ctype_from(struct dp_arena *arena, Dwarf_Die *die);
/* What a pointer points to, an array consists of. */
const struct dp_ctype *dp_ctype_to(struct dp_arena *arena, const struct dp_ctype *type);
const struct dp_ctype *dp_ctype_pointer(struct dp_arena *arena, const struct dp_ctype *to);
const struct dp_ctype *dp_ctype_array(struct dp_arena *arena, const struct dp_ctype *element, uint64_t count);
/* One of C's own types by its words ("unsigned long int", "uint32_t"), or NULL. */
const struct dp_ctype *dp_ctype_plain(const char *name);
static inline bool dp_ctype_is_scalar(const struct dp_ctype *t)
{
	return t->kind == DP_CTYPE_INT || t->kind == DP_CTYPE_FLOAT || t->kind == DP_CTYPE_POINTER;
}

/* A 128-bit integer, a long double: they can be shown, not computed with. */
static inline bool dp_ctype_is_wide(const struct dp_ctype *t)
{
	return t->kind == DP_CTYPE_OTHER && t->look != DP_LOOK_NUMBER;
}
/* Of OTHER: why no value of it can be had. A static text. */
const char *dp_ctype_unread(const struct dp_ctype *t);

/* A member of a record, those of bases and of unnamed members included. */
struct dp_member {
	Dwarf_Die die;
	uint64_t offset;    /* bytes from the record's start */
	uint64_t bit, bits; /* bits: 0, or a bit-field that begins `bit` bits behind `offset` */
	const struct dp_ctype *type;
	const char *name;
	/* In a virtual base: `offset` counts from that base, whose place the object `before` bytes into the record tells at run time. */
	bool is_virtual;
	uint64_t before;
	Dwarf_Die base; /* addr NULL: its place is not known */
};
bool dp_ctype_member(struct dp_arena *arena, const struct dp_ctype *record, const char *name, struct dp_member *ret);
/* Calls `each` for every direct member, bases as members without a name; until it returns false. */
void dp_ctype_members(struct dp_arena *arena, const struct dp_ctype *record, bool (*each)(const struct dp_member *m, void *data),
                      void *data);

/* type_spell.c: the type as C or C++ writes it; an array of it; what it is below pointers, arrays and qualifiers. In the arena; never NULL. */
const char *dp_type_spell(struct dp_arena *arena, Dwarf_Die *type);
const char *dp_type_spell_array(struct dp_arena *arena, Dwarf_Die *element, const uint64_t *count, size_t n);
const char *dp_type_spell_base(struct dp_arena *arena, Dwarf_Die *type);

/* ---- what entries say ----------------------------------------------------------------------------------------------------- */

/* The type that the entry has; false: void. */
bool dp_die_type(Dwarf_Die *die, Dwarf_Die *ret);
/* What typedefs and qualifiers stand for. False: void. */
bool dp_die_peel(Dwarf_Die *die);
/* One of an array's. Where it is not known it may be one that is computed at run time. */
struct dp_dimension {
	uint64_t n;
	bool is_known, is_dynamic;
};
struct dp_dimension dp_die_dimension(Dwarf_Die *subrange);
/* An enumeration: is one of its values negative? Its size, if that is its underlying type's affair. */
bool dp_die_enumeration_is_signed(Dwarf_Die *die, uint64_t *size);
/* The value of an enumerator, extended. */
bool dp_die_enumerator(Dwarf_Die *die, bool is_signed, uint64_t *ret);
/* An unsigned constant attribute, abstract origins included. */
bool dp_die_unsigned(Dwarf_Die *die, unsigned attribute, uint64_t *ret);
bool dp_die_signed(Dwarf_Die *die, unsigned attribute, int64_t *ret);
/* Is this unit written in C, so that its tags stand with their keywords and its enumerators are ints? */
bool dp_die_unit_is_c(Dwarf_Die *unit);
bool dp_die_flag(Dwarf_Die *die, unsigned attribute);

#endif
