/* SPDX-License-Identifier: MIT */
#ifndef DP_PROBES_FIELDS_INTERNAL_H
#define DP_PROBES_FIELDS_INTERNAL_H

#include "probes/probes.h"

/* Names that the CTF layout needs for itself. */
#define DP_NAME_MASK             "_unreadable"
#define DP_NAME_BACKTRACE        "backtrace"
#define DP_NAME_SNAPSHOT         "snapshot_id"
#define DP_NAME_BACKTRACE_LENGTH "_backtrace_length"

/* Appends a copy of `field` (name included) unless it is there already; another field of that name is an error. */
struct dp_error *dp_fields_append(struct dp_fields *fields, const struct dp_field *field) DP_MUST_CHECK;
/* Parses one context and appends its fields; on failure some may have been added. */
struct dp_error *dp_context_parse(struct dp_fields *fields, const char *context) DP_MUST_CHECK;
/* The field's value may be unreadable, so that it has a bit in the mask. */
bool dp_field_may_fault(const struct dp_field *field);

/* Frees what the field owns. */
void dp_field_fini(struct dp_field *field);
/* Leaves the first `n`. */
void dp_fields_cut(struct dp_fields *fields, size_t n);
/* DP_TAG_SYNTAX if the record is too large, or has too many fields. */
struct dp_error *dp_fields_check(const struct dp_fields *fields, const char *context) DP_MUST_CHECK;

#endif
