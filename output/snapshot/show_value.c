/* SPDX-License-Identifier: MIT */
/* A value on one line, in the style of debuggers. Text from the program's memory is escaped for terminals. */
#include "output/format/put.h"
#include "output/snapshot/show.h"

#include <string.h>

static void put(struct dp_buf *b, const char *text)
{
	dp_put_visible(b, text, strlen(text), 0);
}

/* An array is longer than the string in it: trailing NULs are omitted. */
static void put_string(struct dp_buf *b, const struct dp_snap_variable *v)
{
	size_t n = v->is_string ? v->text_size : strlen(v->text);
	while (v->kind == DP_VAR_STRING && n && !v->text[n - 1])
		n--;
	dp_put_visible(b, v->text, n, '"');
	if (v->is_cut)
		dp_put_str(b, "...");
}

static void put_integer(struct dp_buf *b, const struct dp_snap_variable *v)
{
	const char c = (char)v->number;
	if (v->text) { /* wider than 64 bits, or an enumerator */
		put(b, v->text);
		return;
	}
	if (v->is_bool && v->number < 2) {
		dp_put_str(b, v->number ? "true" : "false");
		return;
	}
	if (v->kind == DP_VAR_LL)
		dp_put_signed(b, (int64_t)v->number);
	else
		dp_put_dec(b, v->number);
	if (v->is_char && v->size <= 1) {
		dp_put_str(b, " ");
		dp_put_visible(b, &c, 1, '\'');
	}
}

static unsigned width_of(enum dp_var_kind kind)
{
	return kind == DP_VAR_FLT || kind == DP_VAR_CFLT ? 4 : 8;
}

/* The text of a long double has all its digits. */
static void put_real(struct dp_buf *b, const struct dp_snap_variable *v)
{
	if (v->text)
		put(b, v->text);
	else
		dp_put_double(b, v->real, width_of(v->kind));
	if (v->kind < DP_VAR_CFLT || v->kind > DP_VAR_CLDBL || v->text)
		return;
	dp_put_str(b, v->imaginary < 0 ? " - " : " + ");
	dp_put_double(b, v->imaginary < 0 ? -v->imaginary : v->imaginary, width_of(v->kind));
	dp_put_str(b, "i");
}

static void put_reference(struct dp_buf *b, const struct dp_snap_variable *v)
{
	dp_put_hex(b, v->number);
	if (!v->text)
		return;
	dp_put_str(b, v->is_string ? " " : " <");
	if (v->is_string)
		put_string(b, v);
	else
		put(b, v->text);
	dp_put_str(b, v->is_string ? "" : ">");
}

static void put_none(struct dp_buf *b, const struct dp_snap_variable *v)
{
	dp_put_str(b, v->state == DP_VAR_UNREADABLE ? v->why ? "<unreadable: " : "<unreadable" : "<");
	put(b, v->why ? v->why : v->state == DP_VAR_UNREADABLE ? "" : "no value");
	dp_put_str(b, ">");
}

static void put_text_or_number(struct dp_buf *b, const struct dp_snap_variable *v)
{
	if (v->text)
		put(b, v->text);
	else
		dp_put_signed(b, (int64_t)v->number);
}

static void put_kind(struct dp_buf *b, const struct dp_snap_variable *v)
{
	switch (v->kind) {
	case DP_VAR_BOTTOM:
		dp_put_str(b, "<unknown type>");
		return;
	case DP_VAR_LL:
	case DP_VAR_ULL:
		put_integer(b, v);
		return;
	case DP_VAR_FLT:
	case DP_VAR_DBL:
	case DP_VAR_LDBL:
	case DP_VAR_CFLT:
	case DP_VAR_CDBL:
	case DP_VAR_CLDBL:
		put_real(b, v);
		return;
	case DP_VAR_STRING:
		if (v->text)
			put_string(b, v);
		else
			dp_put_str(b, "\"\"");
		return;
	case DP_VAR_ENUM:
		put_text_or_number(b, v);
		return;
	case DP_VAR_TUPLE: /* a string with a length? */
		if (v->is_string && v->text) {
			put_string(b, v);
			return;
		}
		dp_put_str(b, v->children || v->more ? "{...}" : "{}");
		return;
	case DP_VAR_ARRAY:
		dp_put_str(b, v->children || v->more ? "{...}" : "{}");
		return;
	case DP_VAR_FN:
		dp_put_str(b, "{function ");
		put(b, v->text ? v->text : "?");
		dp_put_str(b, "}");
		return;
	case DP_VAR_REFERENCE:
		put_reference(b, v);
		return;
	}
}

void dp_show_value(struct dp_buf *b, const struct dp_snap_variable *v)
{
	if (v->summary)
		put(b, v->summary);
	else if (v->state != DP_VAR_OK)
		put_none(b, v);
	else
		put_kind(b, v);
}
