/* SPDX-License-Identifier: MIT */
/* C's types, from the debug information or made by the expression language. */
#ifndef DP_PROBES_DWARF_TYPE_H
#define DP_PROBES_DWARF_TYPE_H

#include "base/arena.h"
#include "probes/debug/debug.h"
#include "probes/record/fields.h"

enum dp_ctype_kind {
	DP_CTYPE_VOID,
	DP_CTYPE_INT,     /* integers, characters, bool, enumerations; 1, 2, 4 or 8 bytes */
	DP_CTYPE_FLOAT,   /* 4 or 8 bytes */
	DP_CTYPE_POINTER, /* also references */
	DP_CTYPE_ARRAY,
	DP_CTYPE_RECORD, /* struct, union, class */
	/* Expressions do not compute with these. */
	DP_CTYPE_INT128,
	DP_CTYPE_LONG_DOUBLE, /* x87 */
	DP_CTYPE_COMPLEX,
	DP_CTYPE_FUNCTION,
	DP_CTYPE_MEMBER, /* pointers to data members */
	DP_CTYPE_METHOD, /* pointers to member functions */
	DP_CTYPE_OTHER,  /* not supported: bytes */
};
struct dp_ctype {
	enum dp_ctype_kind kind;
	enum dp_display display; /* of integers by the language's own types; of INT128 and LONG_DOUBLE */
	bool is_signed, is_bool, is_enum, is_reference, is_union;
	bool is_char;            /* a character by its encoding */
	bool is_text;            /* char, signed char: in probes, strings are made of them */
	bool is_word;            /* a register: 64 bits, signed, whatever the other operand is */
	bool is_incomplete;      /* RECORD: only declared */
	bool is_sized;           /* ARRAY: the count is known, be it 0 */
	bool is_dynamic;         /* ARRAY: the length is computed at run time */
	uint64_t size;           /* bytes; 0 if unknown */
	uint64_t count;          /* ARRAY; 0 if unknown */
	const char *name;        /* without typedefs and qualifiers; may be NULL */
	const char *text, *base; /* if `in` makes texts: dp_ctype_format(), dp_ctype_format_base() */
	Dwarf_Die whole;         /* as declared; addr NULL: not in the debug information */
	Dwarf_Die die;           /* without typedefs and qualifiers; addr NULL: the same */
	struct dp_ctypes *in;    /* NULL: built into the language */
	void *owned;             /* for the owner of `in` */
	/* Made when first asked for: use the functions below. */
	const struct dp_ctype *to, *pointer;
	const struct dp_member *member;
	const struct dp_enumerator *enumerator;
	uint32_t nmembers, nenumerators;
	bool members_known, enumerators_known;
	struct dp_ctype *chain;
};

/* The types of one module. Each debug entry's type is made once. */
struct dp_ctypes {
	struct dp_arena *arena;
	struct dp_module *module; /* NULL: none; only for the owner */
	bool makes_texts;         /* as soon as a type is made: the owner must not read files later */
	unsigned depth;           /* nesting of types under construction */
	struct dp_ctype **slot;   /* by entry */
};

extern const struct dp_ctype dp_ctype_int, dp_ctype_uint, dp_ctype_long, dp_ctype_ulong, dp_ctype_duration, dp_ctype_word,
        dp_ctype_char, dp_ctype_double, dp_ctype_float, dp_ctype_void, dp_ctype_bool, dp_ctype_void_pointer;
/* The types of a system call's result and number. */
extern const struct dp_ctype dp_ctype_result, dp_ctype_call;

/* The type of entry `die` (DW_AT_type), and the type that entry `die` describes. Never NULL: void if there is none, or no memory.
 */
const struct dp_ctype *dp_ctype_of(struct dp_ctypes *in, Dwarf_Die *die);
const struct dp_ctype *dp_ctype_from(struct dp_ctypes *in, Dwarf_Die *die);
/* The target of a pointer, or the element type of an array. Never NULL. */
const struct dp_ctype *dp_ctype_to(const struct dp_ctype *type);
/* NULL if out of memory. */
const struct dp_ctype *dp_ctype_pointer(struct dp_ctypes *in, const struct dp_ctype *to);
const struct dp_ctype *dp_ctype_array(struct dp_ctypes *in, const struct dp_ctype *element, uint64_t count);
/* A basic C type by its words ("unsigned long int", "uint32_t"), or NULL. */
const struct dp_ctype *dp_ctype_plain(const char *name);
static inline bool dp_ctype_is_scalar(const struct dp_ctype *t)
{
	return t->kind == DP_CTYPE_INT || t->kind == DP_CTYPE_FLOAT || t->kind == DP_CTYPE_POINTER;
}

/* True for types that probes can show, but not compute with. */
static inline bool dp_ctype_is_wide(const struct dp_ctype *t)
{
	return t->kind == DP_CTYPE_INT128 || t->kind == DP_CTYPE_LONG_DOUBLE;
}

/* True for types that probes cannot read; dp_ctype_unread() tells why, a static text. */
static inline bool dp_ctype_is_opaque(const struct dp_ctype *t)
{
	return t->kind >= DP_CTYPE_COMPLEX;
}
const char *dp_ctype_unread(const struct dp_ctype *t);

static inline bool dp_ctype_is_char(const struct dp_ctype *t)
{
	return t->kind == DP_CTYPE_INT && t->is_char && t->size == 1;
}

/* ---- members and enumerators ---- */

struct dp_member {
	const char *name; /* NULL: a base or unnamed */
	const struct dp_ctype *type;
	Dwarf_Die die;
	uint64_t offset;   /* bytes from the record's start */
	uint8_t bit, bits; /* bits: 0, or width of a bit-field that starts `bit` bits after `offset` */
	bool is_base, is_artificial;
	/* In a virtual base: `offset` counts from that base. The object at offset `before` has the base's location at run
	 * time. */
	bool is_virtual;
	uint64_t before;
	const struct dp_member *base; /* NULL: location unknown */
};
/* The direct members; returns their number. */
size_t dp_ctype_members(const struct dp_ctype *record, const struct dp_member **ret);
/* Finds a member, also of bases and unnamed members. */
bool dp_ctype_member(const struct dp_ctype *record, const char *name, struct dp_member *ret);
size_t dp_ctype_enumerators(const struct dp_ctype *type, const struct dp_enumerator **ret);

/* type_format.c: the type in C or C++ syntax; its base without pointers, arrays and qualifiers. In the arena; never NULL. */
const char *dp_ctype_format(struct dp_arena *arena, const struct dp_ctype *type);
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
bool dp_die_unit_is_go(Dwarf_Die *unit);
bool dp_die_flag(Dwarf_Die *die, unsigned attribute);
/* The entry that this one is a copy of. */
bool dp_die_origin(Dwarf_Die *die, Dwarf_Die *ret);
/* Its name, also its origin's; NULL: none. */
const char *dp_die_name(Dwarf_Die *die);

#endif
