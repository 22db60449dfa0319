/* SPDX-License-Identifier: MIT */
/* Inside of a scope: what is known of the site, and the steps from names to the machine's terms. */
#ifndef DP_PROBES_SCOPE_INTERNAL_H
#define DP_PROBES_SCOPE_INTERNAL_H

#include "probes/expr/syntax/ast.h"
#include "probes/expr/scope/scope.h"
#include "probes/dwarf/storage.h"
#include "probes/dwarf/type.h"

#define DP_SCOPE_FUNCTIONS 32u

struct dp_scope {
	struct dp_image *image;
	struct dp_scope_at at;
	struct dp_arena arena;
	const char *text; /* that is being given a meaning, for carets */
	/* Debug information, on demand. */
	bool asked;
	struct dp_error *no_debug; /* why there is none for this site */
	struct dp_debug *debug;
	uint64_t pc; /* in the debug information's addresses */
	Dwarf_Die unit;
	Dwarf_Die function[DP_SCOPE_FUNCTIONS]; /* around the site, innermost first; the last is no inlined one */
	size_t nfunctions;
	/* What begins at the site but is not around it by its ranges, where the site was not named after one of them. */
	Dwarf_Die beginning[DP_SCOPE_FUNCTIONS];
	size_t nbeginning;
	bool at_entry;       /* the site is the function's first instruction (behind an endbr64) */
	uint64_t body;       /* where the function's body begins: behind the prologue */
	struct dp_found_name *names; /* what has been looked for, found or not: an expression may ask for a name many times */
	/* The canonical frame address, on demand. */
	bool cfa_asked;
	struct dp_expr *cfa;
};

struct dp_variable {
	Dwarf_Die die;
	Dwarf_Die function; /* whose parameter or local it is; addr NULL for others */
	const char *name;
	bool is_parameter, is_constant; /* an enumerator: `value` */
	bool is_ambiguous;              /* an inlined function that begins at the site may be meant */
	uint64_t value;
	uint64_t base_offset;
	const struct dp_ctype *type; /* of an enumerator */
};
struct dp_found_name {
	struct dp_found_name *next;
	const char *name;
	int how; /* DP_NAME_NEAR, DP_NAME_FAR, or the tag of a type */
	bool found;
	struct dp_variable variable;
	Dwarf_Die type;
};
enum { DP_NAME_NEAR = -1, DP_NAME_FAR = -2 };
/* NULL if that has not been looked for. */
struct dp_found_name *dp_scope_recall(struct dp_scope *s, const char *name, int how);
/* For what has been found; its name outlives that of whoever asked. NULL without memory. */
struct dp_found_name *dp_scope_remember(struct dp_scope *s, const char *name, int how);

/* Opens the debug information of the site's module. DP_TAG_NO_DEBUG_INFO. */
struct dp_error *dp_scope_debug(struct dp_scope *s) DP_MUST_CHECK;
/* The function, or NULL: the innermost one, inlined or not; the real one. */
Dwarf_Die *dp_scope_inner(struct dp_scope *s);
Dwarf_Die *dp_scope_outer(struct dp_scope *s);

/* scope_inlined.c: puts the inlined function that the site was named after into `function`, or fills in `beginning`. */
struct dp_error *dp_scope_inlined(struct dp_scope *s) DP_MUST_CHECK;
/* Is the site where this inlined function begins? */
bool dp_scope_is_beginning(struct dp_scope *s, Dwarf_Die *function);

/* frame.c: the CFA by call frame information; NULL if there is none. */
struct dp_expr *dp_frame_cfa(struct dp_scope *s);
/* DW_AT_frame_base of the real function; NULL and *absent. */
struct dp_expr *dp_frame_base(struct dp_scope *s, const char **absent);

/* location.c: where the location attribute says that the object is, at the site. */
struct dp_storage dp_location_of(struct dp_scope *s, Dwarf_Attribute *attr);
/* The object behind a pointer that the compiler did without (DW_OP_implicit_pointer); false if that is not why it is not there. */
bool dp_location_behind(struct dp_scope *s, const struct dp_storage *pointer, struct dp_storage *ret);
/* Where the virtual base is that the member of an object at `object` is in. */
struct dp_storage dp_location_base(struct dp_scope *s, const struct dp_storage *object, const struct dp_member *m);
/* A list of operations (of a frame base, a CFA) with one value. NULL and *absent. */
struct dp_expr *dp_location_value(struct dp_scope *s, Dwarf_Attribute *attr, Dwarf_Op *ops, size_t n, const char **absent);
/* By DWARF's numbering: a general register's value, a vector register's low half. NULL if there is no such register. */
struct dp_expr *dp_location_register(struct dp_scope *s, uint64_t number, unsigned size);
/* The address of a thread-local variable from its offset in the module's segment; NULL and perhaps *absent. */
struct dp_expr *dp_location_thread_local(struct dp_scope *s, const struct dp_expr *e, const char **absent);
/* thread_local.c: the same in a library, whose segment is so large. NULL if it is not known where. */
struct dp_expr *dp_thread_local_of_library(struct dp_scope *s, uint64_t size, uint64_t offset);
/* Is the address below the stack that is in use? */
bool dp_location_is_dead(const struct dp_expr *addr);

/* abi_args.c: where the System V ABI passes parameter `die` of the function at its entry, and where it returns a value. */
struct dp_storage dp_abi_argument(struct dp_scope *s, Dwarf_Die *function, Dwarf_Die *die);
struct dp_storage dp_abi_result(struct dp_scope *s, const struct dp_ctype *type);

/* ---- variables.c ------------------------------------------------------------------------------------------------------ */

/* A variable, parameter or enumerator that is visible at the site. `far`: also those of other units and of the executable. */
bool dp_variable_find(struct dp_scope *s, const char *name, bool far, struct dp_variable *ret);
struct dp_storage dp_variable_storage(struct dp_scope *s, struct dp_variable *v);
/* The value of a DW_AT_const_value. */
struct dp_storage dp_variable_constant(struct dp_scope *s, Dwarf_Attribute *attr);
/* Parameters or locals of the innermost function, in the order of the source. Shadowed ones are left out. */
void dp_variable_each(struct dp_scope *s, bool parameters, bool (*each)(struct dp_variable *v, void *data), void *data);
/* parameters.c: those of a function or of a copy, in the order of its declaration, those that the copy has lost included. */
#define DP_PARAMETERS_MAX 128u
size_t dp_parameters_of(Dwarf_Die *function, Dwarf_Die *ret, size_t max);
/* Does what `function` is a copy of declare that name, which is not in the copy? `ret` has no place then. */
bool dp_parameters_lost(Dwarf_Die *function, const char *name, Dwarf_Die *ret);
/* DP_TAG_NO_VARIABLE with what it may have meant. */
struct dp_error *dp_variable_unknown(struct dp_scope *s, const char *name, size_t at) DP_MUST_CHECK;
/* types_find.c: a type by its name; NULL if the debug information does not know it. */
const struct dp_ctype *dp_type_find(struct dp_scope *s, const struct dp_ast_type *type);
/* The definition of a record that is only declared here; the type itself if there is none. */
const struct dp_ctype *dp_type_complete(struct dp_scope *s, const struct dp_ctype *type);

/* ---- lower*.c: an expression's meaning ---------------------------------------------------------------------------------- */

struct dp_operand {
	const struct dp_ctype *type;
	bool is_place;             /* `storage` (and bits); else `value` */
	struct dp_storage storage;
	uint64_t bit, bits;        /* a bit-field; bits 0: none */
	struct dp_expr *value;     /* integers extended to 64 bits by their type, pointers, the bits of doubles */
	const char *absent;        /* there is no value, and why */
	bool is_constant;          /* a number without a type yet; 64 bits */
	bool is_literal;           /* as typed: above INT64_MAX it is unsigned */
	bool is_enumerator;        /* C's, which are ints where they fit, whatever the enumeration is */
	const char *string;        /* a string literal */
	bool is_str, is_comm;      /* str(p): the type is a pointer; comm */
	uint64_t length;           /* of str(p, n), or 0 */
	bool is_slice;             /* show the elements however many they are */
};
struct dp_error *dp_lower(struct dp_scope *s, const struct dp_ast *ast, struct dp_operand *ret) DP_MUST_CHECK;
struct dp_error *dp_lower_binary(struct dp_scope *s, const struct dp_ast *ast, struct dp_operand *ret) DP_MUST_CHECK;
struct dp_error *dp_lower_name(struct dp_scope *s, const struct dp_ast *ast, struct dp_operand *ret) DP_MUST_CHECK;
struct dp_error *dp_lower_register(struct dp_scope *s, const char *name, const struct dp_ast *ast, struct dp_operand *ret) DP_MUST_CHECK;
/* lower_call.c: a name of the system call that the site makes. */
bool dp_lower_call(struct dp_scope *s, const char *name, struct dp_operand *ret);
struct dp_operand dp_call_argument(struct dp_scope *s, unsigned n);
/* The object's value: read from where it is; arrays become pointers. May set `absent`. */
struct dp_error *dp_lower_value(struct dp_scope *s, const struct dp_ast *ast, struct dp_operand *o) DP_MUST_CHECK;
/* The value as another scalar type. */
struct dp_operand dp_lower_convert(struct dp_scope *s, struct dp_operand o, const struct dp_ctype *to);
/* What C's integer promotions make of it. */
const struct dp_ctype *dp_promoted(const struct dp_operand *o);
/* The type that C gives the constant: hexadecimal and octal numbers may become unsigned. */
const struct dp_ctype *dp_literal_type(const struct dp_scope *s, const struct dp_ast *ast, const struct dp_operand *o);
/* 0 or 1. */
struct dp_operand dp_lower_truth(struct dp_scope *s, struct dp_operand o);
/* The member of a record. */
struct dp_error *dp_lower_member(struct dp_scope *s, const struct dp_ast *ast, struct dp_operand record, const char *name,
                                 struct dp_operand *ret) DP_MUST_CHECK;
/* The object behind a pointer. */
struct dp_error *dp_lower_deref(struct dp_scope *s, const struct dp_ast *ast, struct dp_operand pointer, struct dp_operand *ret) DP_MUST_CHECK;
struct dp_operand dp_operand_member(struct dp_scope *s, const struct dp_operand *record, const struct dp_member *m);

#endif
