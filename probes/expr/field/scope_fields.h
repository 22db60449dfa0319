/* SPDX-License-Identifier: MIT */
/* Makes fields from typed values. */
#ifndef DP_PROBES_EXPR_FIELD_SCOPE_FIELDS_H
#define DP_PROBES_EXPR_FIELD_SCOPE_FIELDS_H

#include "probes/record/fields_internal.h"
#include "probes/expr/scope/scope_internal.h"

/* The names of the type's values, in one block that the caller frees. NULL if it has none. */
const struct dp_enumeration *dp_enumeration_of(const struct dp_ctype *type);

struct dp_fields_maker {
	struct dp_scope *s;
	struct dp_fields *fields;
	unsigned budget; /* how many fields this context may still add */
};
/* value_fields.c: adds the fields of one value. `label` is the display name; the field's name is made from it unless `name` is given. */
struct dp_error *dp_fields_of(struct dp_fields_maker *m, const char *name, const char *label, struct dp_operand o,
                              unsigned depth) DP_MUST_CHECK;
/* call_fields.c: adds the arguments of the system call at the site. */
struct dp_error *dp_call_fields(struct dp_fields_maker *m) DP_MUST_CHECK;
/* And all else that a line about the call is made of (DP_CONTEXT_CALL). */
struct dp_error *dp_call_line_fields(struct dp_fields_maker *m) DP_MUST_CHECK;
/* scope_field.c: these add one field for one scalar, string, or array of bytes. */
struct dp_error *dp_field_scalar(struct dp_fields_maker *m, const char *name, const char *label,
                                 struct dp_operand o) DP_MUST_CHECK;
/* The string at the operand's value, with its count and limit. */
struct dp_error *dp_field_text(struct dp_fields_maker *m, const char *name, const char *label,
                               const struct dp_operand *o) DP_MUST_CHECK;
/* A 16-byte value (dp_ctype_is_wide()), in memory or in two registers. */
struct dp_error *dp_field_wide(struct dp_fields_maker *m, const char *name, const char *label, const struct dp_operand *o) DP_MUST_CHECK;
struct dp_error *dp_field_bytes(struct dp_fields_maker *m, const char *name, const char *label, struct dp_expr *addr,
                                uint64_t n) DP_MUST_CHECK;
struct dp_error *dp_field_absent(struct dp_fields_maker *m, const char *name, const char *label, const struct dp_ctype *type,
                                 const char *why) DP_MUST_CHECK;

#endif
