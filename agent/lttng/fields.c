/* SPDX-License-Identifier: MIT */
/* A probe's fields as LTTng types. All are aligned to 8 bits: the payload is packed. */
#include "agent/lttng/event.h"
#include "agent/lttng/guest/redirect.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MASK_NAME "unreadable"

#define INTEGER(bits, is_signed, shown)                                                                                          \
	{                                                                                                                        \
		.parent = {.type = lttng_ust_type_integer}, .struct_size = sizeof(struct lttng_ust_type_integer),                \
		.size = (bits), .alignment = 8, .signedness = (is_signed), .base = (shown),                                      \
	}
#define SIZES(is_signed, shown)                                                                                                  \
	{                                                                                                                        \
		INTEGER(8, is_signed, shown), INTEGER(16, is_signed, shown), INTEGER(32, is_signed, shown),                      \
		        INTEGER(64, is_signed, shown)                                                                            \
	}

static const struct lttng_ust_type_integer integers[2][2][4] = {
        /* [signed][hex][log2 of the size] */
        {SIZES(0, 10), SIZES(0, 16)},
        {SIZES(1, 10), SIZES(1, 16)},
};

static const struct lttng_ust_type_float floats[2] = {
        {
                .parent = {.type = lttng_ust_type_float},
                .struct_size = sizeof(struct lttng_ust_type_float),
                .exp_dig = 32 - FLT_MANT_DIG,
                .mant_dig = FLT_MANT_DIG,
                .alignment = 8,
        },
        {
                .parent = {.type = lttng_ust_type_float},
                .struct_size = sizeof(struct lttng_ust_type_float),
                .exp_dig = 64 - DBL_MANT_DIG,
                .mant_dig = DBL_MANT_DIG,
                .alignment = 8,
        },
};

static const struct lttng_ust_type_string text = {
        .parent = {.type = lttng_ust_type_string},
        .struct_size = sizeof(struct lttng_ust_type_string),
        .encoding = lttng_ust_string_encoding_UTF8,
};

#define BYTE    (&integers[0][1][0].parent)
#define WORD    (&integers[0][1][3].parent)
#define COUNTER (&integers[0][0][0].parent)

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static bool letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool identifier(const char *name, size_t room)
{
	if (!letter(name[0]))
		return false;
	for (size_t i = 1; i < room; i++) {
		if (!name[i])
			return true;
		if (!letter(name[i]) && (name[i] < '0' || name[i] > '9'))
			return false;
	}
	return false; /* no NUL */
}

/* Whether a field has this name, or brings a field that has it. */
static bool brings(const struct dp_sink_field *f, const char *name)
{
	const size_t n = strlen(f->name);
	if (strcmp(f->name, name) == 0)
		return true;
	return f->type == DP_SINK_BACKTRACE && name[0] == '_' && strncmp(name + 1, f->name, n) == 0 &&
	       strcmp(name + 1 + n, "_length") == 0;
}

static bool good_size(const struct dp_sink_field *f)
{
	const uint32_t n = f->size;
	switch ((enum dp_sink_type)f->type) {
	case DP_SINK_INT:
	case DP_SINK_UINT:
		return n == 1 || n == 2 || n == 4 || n == 8;
	case DP_SINK_FLOAT:
		return n == 4 || n == 8;
	case DP_SINK_BYTES:
		return n > 0 && n <= DP_RECORD_MAX;
	case DP_SINK_STRING:
	case DP_SINK_BACKTRACE:
		return true;
	}
	return false;
}

const char *dp_lttng_check_fields(const struct dp_sink_field *fields, uint32_t n, bool mask)
{
	if (n + mask > DP_LTTNG_FIELDS)
		return "too many fields";
	for (uint32_t i = 0; i < n; i++) {
		if (!identifier(fields[i].name, sizeof(fields[i].name)))
			return "a field's name is not a C identifier";
		if (!good_size(&fields[i]))
			return "a field's size does not fit its type";
	}
	for (uint32_t i = 0; i < n; i++) {
		if (mask && brings(&fields[i], MASK_NAME))
			return "the field name " MASK_NAME " is reserved for the list of unreadable fields";
		for (uint32_t j = 0; j < n; j++)
			if (i != j && brings(&fields[i], fields[j].name))
				return "two fields have the same name";
	}
	return NULL;
}

/* ---- descriptions ------------------------------------------------------------------------------------------------- */

static const struct lttng_ust_type_common *integer_type(const struct dp_sink_field *f)
{
	return &integers[f->type == DP_SINK_INT][f->hex != 0][__builtin_ctz(f->size)].parent;
}

static const struct lttng_ust_type_common *array_type(uint32_t length)
{
	struct lttng_ust_type_array *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	*t = (struct lttng_ust_type_array){
	        .parent = {.type = lttng_ust_type_array},
	        .struct_size = sizeof(*t),
	        .elem_type = BYTE,
	        .length = length,
	};
	return &t->parent;
}

static const struct lttng_ust_type_common *sequence_type(const char *length_name)
{
	struct lttng_ust_type_sequence *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	*t = (struct lttng_ust_type_sequence){
	        .parent = {.type = lttng_ust_type_sequence},
	        .struct_size = sizeof(*t),
	        .length_name = length_name,
	        .elem_type = WORD,
	};
	return &t->parent;
}

static const struct lttng_ust_event_field *make_field(const char *name, const struct lttng_ust_type_common *type, bool nofilter)
{
	struct lttng_ust_event_field *f = name && type ? calloc(1, sizeof(*f)) : NULL;
	if (f)
		*f = (struct lttng_ust_event_field){.struct_size = sizeof(*f), .name = name, .type = type, .nofilter = nofilter};
	return f;
}

static const struct lttng_ust_type_common *type_of(const struct dp_sink_field *f, const char *length_name)
{
	switch ((enum dp_sink_type)f->type) {
	case DP_SINK_INT:
	case DP_SINK_UINT:
		return integer_type(f);
	case DP_SINK_FLOAT:
		return &floats[f->size == sizeof(double)].parent;
	case DP_SINK_STRING:
		return &text.parent;
	case DP_SINK_BYTES:
		return array_type(f->size);
	case DP_SINK_BACKTRACE:
		return sequence_type(length_name);
	}
	return NULL;
}

const struct lttng_ust_event_field **dp_lttng_describe(const struct dp_sink_field *fields, uint32_t n, bool mask, size_t *ret_n)
{
	const struct lttng_ust_event_field **list = calloc(2 * (size_t)n + 1, sizeof(*list)), **to = list;
	if (!list)
		return NULL;
	if (mask)
		*to++ = make_field(MASK_NAME, WORD, false);
	for (uint32_t i = 0; i < n; i++) {
		char *length_name = NULL;
		if (fields[i].type == DP_SINK_BACKTRACE) {
			if (dp_lttng_asprintf(&length_name, "_%s_length", fields[i].name) < 0)
				return NULL;
			*to++ = make_field(length_name, COUNTER, true);
		}
		*to++ = make_field(dp_lttng_strdup(fields[i].name), type_of(&fields[i], length_name), false);
	}
	*ret_n = (size_t)(to - list);
	for (size_t i = 0; i < *ret_n; i++)
		if (!list[i])
			return NULL;
	return list;
}
