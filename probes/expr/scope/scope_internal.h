/* SPDX-License-Identifier: MIT */
/* Internals of a scope: what is known of the site, and the steps from names to struct dp_expr. */
#ifndef DP_PROBES_EXPR_SCOPE_SCOPE_INTERNAL_H
#define DP_PROBES_EXPR_SCOPE_SCOPE_INTERNAL_H

#include "probes/expr/syntax/ast.h"
#include "probes/expr/scope/scope.h"
#include "probes/dwarf/storage.h"
#include "probes/dwarf/type.h"

#define DP_SCOPE_FUNCTIONS 32u

struct dp_scope {
	struct dp_image *image;
	struct dp_scope_at at;
	struct dp_arena arena;
	struct dp_ctypes types;
	const char *text; /* being compiled, for carets */
	struct dp_recorded_scope *recorded; /* lower_recorded.c; NULL: names are those of a program */
	/* Debug information, loaded on demand. */
	bool asked;
	struct dp_error *no_debug; /* why this site has none */
	struct dp_debug *debug;
	uint64_t pc; /* the site, in the debug information's addresses */
	Dwarf_Die unit;
	Dwarf_Die function[DP_SCOPE_FUNCTIONS]; /* around the site, innermost first; the last one is not inlined */
	size_t nfunctions;
	/* Inlined functions that start at the site although their ranges exclude it, unless the site was named after one of
	 * them. */
	Dwarf_Die beginning[DP_SCOPE_FUNCTIONS];
	size_t nbeginning;
	bool at_entry;       /* the site is the function's first instruction, or follows its endbr64 */
	uint64_t body;       /* start of the function's body, after the prologue */
	struct dp_found_name *names; /* cache of lookups, also failed ones: an expression may use a name many times */
	/* The canonical frame address, computed on demand. */
	bool cfa_asked;
	struct dp_expr *cfa;
};

struct dp_variable {
	Dwarf_Die die;
	Dwarf_Die function; /* function of the parameter or local; addr NULL for others */
	const char *name;
	bool is_parameter, is_constant; /* is_constant: an enumerator, see `value` */
	bool is_ambiguous;              /* may belong to an inlined function that starts at the site */
	uint64_t value;
	uint64_t base_offset;
	const struct dp_ctype *type; /* only of an enumerator */
};
struct dp_found_name {
	struct dp_found_name *next;
	const char *name;
	int how; /* DP_NAME_NEAR, DP_NAME_FAR, or a type's tag */
	bool found;
	struct dp_variable variable;
	Dwarf_Die type;
};
enum { DP_NAME_NEAR = -1, DP_NAME_FAR = -2 };
/* A cached lookup; NULL if the name was not looked up. */
struct dp_found_name *dp_scope_recall(struct dp_scope *s, const char *name, int how);
/* Adds a cache entry, with its own copy of the name. NULL when out of memory. */
struct dp_found_name *dp_scope_remember(struct dp_scope *s, const char *name, int how);

/* Opens the debug information of the site's module, or returns DP_TAG_NO_DEBUG_INFO. */
struct dp_error *dp_scope_debug(struct dp_scope *s) DP_MUST_CHECK;
/* The innermost function (inlined or not), and the real one; NULL if unknown. */
static inline Dwarf_Die *dp_scope_inner(struct dp_scope *s)
{
	return s->nfunctions ? &s->function[0] : NULL;
}

static inline Dwarf_Die *dp_scope_outer(struct dp_scope *s)
{
	return s->nfunctions ? &s->function[s->nfunctions - 1] : NULL;
}

/* scope_inlined.c: adds the inlined function after which the site was named to `function`, or fills in `beginning`. */
struct dp_error *dp_scope_inlined(struct dp_scope *s) DP_MUST_CHECK;
/* True if this inlined function starts at the site. */
bool dp_scope_is_beginning(struct dp_scope *s, Dwarf_Die *function);

/* frame.c: the CFA from call frame information; NULL if there is none. */
struct dp_expr *dp_frame_cfa(struct dp_scope *s);
/* DW_AT_frame_base of the real function; NULL and *absent on failure. */
struct dp_expr *dp_frame_base(struct dp_scope *s, const char **absent);

/* location.c: where the object of a location attribute is, at the site. */
struct dp_storage dp_location_of(struct dp_scope *s, Dwarf_Attribute *attr);
/* The target of an optimized-out pointer (DW_OP_implicit_pointer); false if the pointer is missing for another reason. */
bool dp_location_behind(struct dp_scope *s, const struct dp_storage *pointer, struct dp_storage *ret);
/* The location of the virtual base with member `m` in an object at `object`. */
struct dp_storage dp_location_base(struct dp_scope *s, const struct dp_storage *object, const struct dp_member *m);
/* Evaluates operations with one value (frame base, CFA). NULL and *absent on failure. */
struct dp_expr *dp_location_value(struct dp_scope *s, Dwarf_Attribute *attr, Dwarf_Op *ops, size_t n, const char **absent);
/* By DWARF's number: a general register's value, or a vector register's low half. NULL if there is no such register. */
struct dp_expr *dp_location_register(struct dp_scope *s, uint64_t number, unsigned size);
/* Address of a thread-local variable at an offset in the module's segment. NULL on failure, may set *absent. */
struct dp_expr *dp_location_thread_local(struct dp_scope *s, const struct dp_expr *e, const char **absent);
/* thread_local.c: the same for a library; `size` is its segment's. NULL if unknown. */
struct dp_expr *dp_thread_local_of_library(struct dp_scope *s, uint64_t size, uint64_t offset);
/* True if the address is below the used part of the stack. */
bool dp_location_is_dead(const struct dp_expr *addr);

/* variable_storage.c: where a variable is. */
struct dp_storage dp_variable_storage(struct dp_scope *s, struct dp_variable *v);

/* abi_args.c: where the System V ABI passes parameter `die` at the function's entry, and where it returns a value. */
struct dp_storage dp_abi_argument(struct dp_scope *s, Dwarf_Die *function, Dwarf_Die *die);
struct dp_storage dp_abi_result(struct dp_scope *s, const struct dp_ctype *type);

/* ---- variables.c ---- */

/* Finds a variable, parameter or enumerator visible at the site. `far`: also in other units and the executable. */
bool dp_variable_find(struct dp_scope *s, const char *name, bool far, struct dp_variable *ret);
/* Walks the innermost function's parameters or locals in source order, without shadowed ones. */
void dp_variable_each(struct dp_scope *s, bool parameters, bool (*each)(struct dp_variable *v, void *data), void *data);
/*
 * block_variables.c: the variables of a function or inlined copy that are visible at `pc`, those of inner blocks last; with
 * `lost`, also those of its origin that the copy lacks.
 */
struct dp_block_walk {
	uint64_t pc;
	bool lost;
	void (*each)(Dwarf_Die *variable, void *data);
	void *data;
	unsigned steps;
};
void dp_block_variables(struct dp_block_walk *w, Dwarf_Die *block);
/* The start of the function's body, after the prologue. */
uint64_t dp_function_body(Dwarf_Die *function, uint64_t entry);
/* parameters.c: the parameters of a function or copy in declaration order, with those that the copy has lost. */
#define DP_PARAMETERS_MAX 128u
size_t dp_parameters_of(Dwarf_Die *function, Dwarf_Die *ret, size_t max);
/* True if the original of the copy `function` declares that name and the copy lacks it. `ret` then has no location. */
bool dp_parameters_lost(Dwarf_Die *function, const char *name, Dwarf_Die *ret);
/* DP_TAG_NO_VARIABLE, with suggestions. */
struct dp_error *dp_variable_unknown(struct dp_scope *s, const char *name, size_t at) DP_MUST_CHECK;
/* The same where no debug information says which variables there are; takes `why`, and returns it if no word is similar. */
struct dp_error *dp_variable_unreadable(struct dp_scope *s, const char *name, struct dp_error *why) DP_MUST_CHECK;
/* type_find.c: finds a type by name; NULL if the debug information does not have it. */
const struct dp_ctype *dp_type_find(struct dp_scope *s, const struct dp_ast_type *type);
/* The definition of a record that is only declared here; the type itself if there is none. */
const struct dp_ctype *dp_type_complete(struct dp_scope *s, const struct dp_ctype *type);

/* ---- lower*.c: from the syntax tree to struct dp_expr ---- */

struct dp_operand {
	const struct dp_ctype *type;
	bool is_place;             /* the value is in `storage` (and bits), else in `value` */
	struct dp_storage storage;
	uint64_t bit, bits;        /* a bit-field; bits 0: none */
	struct dp_expr *value;     /* integers extended to 64 bits, pointers, the bits of doubles */
	const char *absent;        /* reason why there is no value */
	bool is_constant;          /* a number without a type so far; 64 bits */
	bool is_literal;           /* as typed: unsigned above INT64_MAX */
	bool is_enumerator;        /* a C enumerator: an int if it fits, whatever the enumeration's type */
	const char *string;        /* a string literal */
	bool is_str, is_comm;      /* str(p): the type is a pointer; comm */
	bool is_array;             /* of a string: it is an array, which is never NULL */
	uint64_t length;           /* of str(p, n), or 0 */
	struct dp_expr *count;     /* of a string that knows its length: bytes, extended per its type; else NULL */
	bool count_is_signed;
	bool is_counted;           /* it is such a string by its type, not by str() */
	bool is_slice;             /* show all elements, whatever their number */
};
struct dp_error *dp_lower(struct dp_scope *s, const struct dp_ast *ast, struct dp_operand *ret) DP_MUST_CHECK;
struct dp_error *dp_lower_binary(struct dp_scope *s, const struct dp_ast *ast, struct dp_operand *ret) DP_MUST_CHECK;
/* lower_string.c: str(), and == != =~ where one side is a text in quotes. */
struct dp_error *dp_lower_str(struct dp_scope *s, const struct dp_ast *ast, struct dp_operand *ret) DP_MUST_CHECK;
struct dp_error *dp_lower_compare_string(struct dp_scope *s, const struct dp_ast *ast, const struct dp_operand *a,
                                         const struct dp_operand *b, struct dp_operand *ret) DP_MUST_CHECK;
struct dp_error *dp_lower_name(struct dp_scope *s, const struct dp_ast *ast, struct dp_operand *ret) DP_MUST_CHECK;
struct dp_error *dp_lower_register(struct dp_scope *s, const char *name, const struct dp_ast *ast, struct dp_operand *ret) DP_MUST_CHECK;
/* lower_recorded.c: what was recorded as this part of an expression. *found is false for operators and numbers. */
struct dp_error *dp_lower_recorded(struct dp_scope *s, const struct dp_ast *ast, bool *found,
                                   struct dp_operand *ret) DP_MUST_CHECK;
/* lower_call.c: resolves a name of the system call at the site. */
bool dp_lower_call(struct dp_scope *s, const char *name, struct dp_operand *ret);
/* lower_goroutine.c: `goid`, in Go programs; elsewhere *found is false. */
struct dp_error *dp_lower_goroutine(struct dp_scope *s, bool *found, struct dp_operand *ret) DP_MUST_CHECK;
struct dp_operand dp_call_argument(struct dp_scope *s, unsigned n);
/* Reads the operand's value from its storage; arrays become pointers. May set `absent`. */
struct dp_error *dp_lower_value(struct dp_scope *s, const struct dp_ast *ast, struct dp_operand *o) DP_MUST_CHECK;
/* A place of a type that is a string with a length becomes that string; false: it is none. */
bool dp_lower_counted(struct dp_scope *s, struct dp_operand *o);
/* Converts the value to another scalar type. */
struct dp_operand dp_lower_convert(struct dp_scope *s, struct dp_operand o, const struct dp_ctype *to);
/* The type after C's integer promotions. */
const struct dp_ctype *dp_promoted(const struct dp_operand *o);
/* The type of a C constant: hexadecimal and octal numbers may become unsigned. */
const struct dp_ctype *dp_literal_type(const struct dp_scope *s, const struct dp_ast *ast, const struct dp_operand *o);
/* Converts a value for use as a condition: a float is compared with 0. */
struct dp_operand dp_lower_truth(struct dp_scope *s, struct dp_operand o);
/* The member of a record. */
struct dp_error *dp_lower_member(struct dp_scope *s, const struct dp_ast *ast, struct dp_operand record, const char *name,
                                 struct dp_operand *ret) DP_MUST_CHECK;
/* Dereferences a pointer. */
struct dp_error *dp_lower_deref(struct dp_scope *s, const struct dp_ast *ast, struct dp_operand pointer, struct dp_operand *ret) DP_MUST_CHECK;
struct dp_operand dp_operand_member(struct dp_scope *s, const struct dp_operand *record, const struct dp_member *m);

#endif
