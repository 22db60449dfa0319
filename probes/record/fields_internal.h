/* SPDX-License-Identifier: MIT */
#ifndef DP_PROBES_RECORD_FIELDS_INTERNAL_H
#define DP_PROBES_RECORD_FIELDS_INTERNAL_H

#include "probes/record/fields.h"

/* Names that the CTF layout reserves. */
#define DP_NAME_MASK             "_unreadable"
#define DP_NAME_BACKTRACE        "backtrace"
#define DP_NAME_SNAPSHOT         "snapshot_id"
#define DP_NAME_BACKTRACE_LENGTH "_backtrace_length"

/* Appends a copy of `field`, including the name, unless the table has it already. Another field of that name is an error. */
struct dp_error *dp_fields_append(struct dp_fields *fields, const struct dp_field *field) DP_MUST_CHECK;

/* Frees what the field owns. */
void dp_field_fini(struct dp_field *field);
/* Keeps the first `n` fields. */
void dp_fields_cut(struct dp_fields *fields, size_t n);
/* DP_TAG_SYNTAX if the record is too large or has too many fields. */
struct dp_error *dp_fields_check(const struct dp_fields *fields, const char *context) DP_MUST_CHECK;

#endif
