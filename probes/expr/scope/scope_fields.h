/* SPDX-License-Identifier: MIT */
/* From typed values to fields. */
#ifndef DP_PROBES_SCOPE_FIELDS_H
#define DP_PROBES_SCOPE_FIELDS_H

#include "probes/record/fields_internal.h"
#include "probes/expr/scope/scope_internal.h"

/* The names of the type's values: one block, to be freed. NULL if it has none. */
const struct dp_enumeration *dp_enumeration_of(const struct dp_ctype *type);

struct dp_fields_maker {
	struct dp_scope *s;
	struct dp_fields *fields;
	unsigned budget; /* fields that this context may still make */
};
/* One value, or what it consists of. `label` is what people read; the field's name is made from it unless `name` is given. */
struct dp_error *dp_fields_of(struct dp_fields_maker *m, const char *name, const char *label, struct dp_operand o,
                              unsigned depth) DP_MUST_CHECK;
/* lower_call.c: the arguments of the system call that the site makes. */
struct dp_error *dp_call_fields(struct dp_fields_maker *m) DP_MUST_CHECK;
/* scope_field.c: one field for one scalar, string, or array of bytes. */
struct dp_error *dp_field_scalar(struct dp_fields_maker *m, const char *name, const char *label,
                                 struct dp_operand o) DP_MUST_CHECK;
struct dp_error *dp_field_text(struct dp_fields_maker *m, const char *name, const char *label, struct dp_expr *addr,
                               uint64_t length) DP_MUST_CHECK;
/* A value of sixteen bytes (dp_ctype_is_wide()), in memory or in two registers. */
struct dp_error *dp_field_wide(struct dp_fields_maker *m, const char *name, const char *label, const struct dp_operand *o) DP_MUST_CHECK;
struct dp_error *dp_field_bytes(struct dp_fields_maker *m, const char *name, const char *label, struct dp_expr *addr,
                                uint64_t n) DP_MUST_CHECK;
struct dp_error *dp_field_absent(struct dp_fields_maker *m, const char *name, const char *label, const struct dp_ctype *type,
                                 const char *why) DP_MUST_CHECK;

#endif
