/* SPDX-License-Identifier: MIT */
/*
 * Fields of any CTF event as ours. Members of structures become fields of their own (a.b is a_b); what has no place in a payload
 * of ours (arrays, variants) becomes a text. The walks over classes and over events must visit the same members.
 */
#if __has_include(<babeltrace2/babeltrace.h>)

#include "output/format/put.h"
#include "output/trace/babeltrace.h"

#include <inttypes.h>
#include <string.h>

#define TEXT_MOST 1024u
#define DEEPEST   8u

bool dp_foreign_names_thread(const char *member)
{
	static const char *const words[] = {"vpid", "vtid", "pid", "tid", "procname"};
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (!strcmp(member, words[i]))
			return true;
	return false;
}

static bool is_signed(bt_field_class_type type)
{
	return type == BT_FIELD_CLASS_TYPE_SIGNED_INTEGER || type == BT_FIELD_CLASS_TYPE_SIGNED_ENUMERATION;
}

static bool is_unsigned(bt_field_class_type type)
{
	return type == BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER || type == BT_FIELD_CLASS_TYPE_UNSIGNED_ENUMERATION ||
	       type == BT_FIELD_CLASS_TYPE_BOOL;
}

static bool is_real(bt_field_class_type type)
{
	return type == BT_FIELD_CLASS_TYPE_SINGLE_PRECISION_REAL || type == BT_FIELD_CLASS_TYPE_DOUBLE_PRECISION_REAL;
}

/* ---- classes --------------------------------------------------------------------------------------------------------------- */

struct making {
	const struct dp_babeltrace *bt;
	struct dp_arena *arena;
	struct dp_fields *fields;
	size_t capacity;
};

static void add_field(struct making *m, const char *prefix, const char *name, const bt_field_class *class)
{
	const bt_field_class_type type = m->bt->field_class_get_type(class);
	struct dp_field f = {.type = DP_TYPE_STRING, .size = TEXT_MOST, .source = DP_SRC_REG};
	if (is_signed(type) || is_unsigned(type) || is_real(type)) {
		f.type = is_real(type) ? DP_TYPE_FLOAT : is_signed(type) ? DP_TYPE_INT : DP_TYPE_UINT;
		f.size = 8;
		f.hex = !is_real(type) && type != BT_FIELD_CLASS_TYPE_BOOL &&
		        m->bt->field_class_integer_get_preferred_display_base(class) ==
		                BT_FIELD_CLASS_INTEGER_PREFERRED_DISPLAY_BASE_HEXADECIMAL;
	}
	f.name = dp_arena_printf(m->arena, "%s%s", prefix, name);
	if (m->fields->n == m->capacity) {
		const size_t capacity = m->capacity ? 2 * m->capacity : 16;
		struct dp_field *grown = dp_arena_alloc(m->arena, capacity * sizeof(*grown));
		if (!grown)
			return;
		if (m->fields->n)
			memcpy(grown, m->fields->field, m->fields->n * sizeof(*grown));
		m->fields->field = grown;
		m->capacity = capacity;
	}
	m->fields->field[m->fields->n++] = f;
}

static void add_members(struct making *m, const bt_field_class *of, const char *prefix, bool context, unsigned depth)
{
	const struct dp_babeltrace *bt = m->bt;
	for (uint64_t i = 0; of && i < bt->field_class_structure_get_member_count(of); i++) {
		const bt_field_class_structure_member *member = bt->field_class_structure_borrow_member_by_index_const(of, i);
		const bt_field_class *class = bt->field_class_structure_member_borrow_field_class_const(member);
		const char *name = bt->field_class_structure_member_get_name(member);
		if (context && dp_foreign_names_thread(name))
			continue;
		const char *inner = dp_arena_printf(m->arena, "%s%s_", prefix, name);
		if (bt->field_class_get_type(class) == BT_FIELD_CLASS_TYPE_STRUCTURE && depth < DEEPEST && inner)
			add_members(m, class, inner, false, depth + 1);
		else
			add_field(m, prefix, name, class);
	}
}

struct dp_error *dp_foreign_fields(const struct dp_babeltrace *bt, const bt_event_class *of, const bt_stream_class *stream,
                                   struct dp_arena *arena, struct dp_fields *ret)
{
	struct making m = {.bt = bt, .arena = arena, .fields = ret};
	add_members(&m, bt->event_class_borrow_payload_field_class_const(of), "", false, 0);
	add_members(&m, bt->event_class_borrow_specific_context_field_class_const(of), "", true, 0);
	add_members(&m, bt->stream_class_borrow_event_common_context_field_class_const(stream), "", true, 0);
	return arena->failed ? dp_error_nomem() : NULL;
}

/* ---- events ---------------------------------------------------------------------------------------------------------------- */

static void put_text(const struct dp_babeltrace *bt, const bt_field *f, struct dp_buf *b, unsigned depth);

static void put_list(const struct dp_babeltrace *bt, const bt_field *f, struct dp_buf *b, unsigned depth)
{
	const bool array = bt->field_get_class_type(f) != BT_FIELD_CLASS_TYPE_STRUCTURE;
	const bt_field_class *class = bt->field_borrow_class_const(f);
	const uint64_t n = array ? bt->field_array_get_length(f) : bt->field_class_structure_get_member_count(class);
	dp_put_str(b, array ? "[" : "{");
	for (uint64_t i = 0; i < n && b->len < TEXT_MOST; i++) {
		dp_put_str(b, i ? ", " : "");
		put_text(bt,
		         array ? bt->field_array_borrow_element_field_by_index_const(f, i)
		               : bt->field_structure_borrow_member_field_by_index_const(f, i),
		         b, depth + 1);
	}
	dp_put_str(b, array ? "]" : "}");
}

static void put_unsigned(const struct dp_babeltrace *bt, const bt_field *f, struct dp_buf *b)
{
	const bt_field_class *class = bt->field_borrow_class_const(f);
	const uint64_t v = bt->field_integer_unsigned_get_value(f);
	if (bt->field_class_integer_get_preferred_display_base(class) ==
	    BT_FIELD_CLASS_INTEGER_PREFERRED_DISPLAY_BASE_HEXADECIMAL)
		dp_put_hex(b, v);
	else
		dp_put_dec(b, v);
}

static double real_of(const struct dp_babeltrace *bt, const bt_field *f, bt_field_class_type type)
{
	return type == BT_FIELD_CLASS_TYPE_SINGLE_PRECISION_REAL ? (double)bt->field_real_single_precision_get_value(f)
	                                                         : bt->field_real_double_precision_get_value(f);
}

static void put_text(const struct dp_babeltrace *bt, const bt_field *f, struct dp_buf *b, unsigned depth)
{
	const bt_field_class_type type = bt->field_get_class_type(f);
	if (type == BT_FIELD_CLASS_TYPE_BOOL)
		dp_put_str(b, bt->field_bool_get_value(f) ? "true" : "false");
	else if (is_signed(type))
		dp_put_signed(b, bt->field_integer_signed_get_value(f));
	else if (is_unsigned(type))
		put_unsigned(bt, f, b);
	else if (is_real(type))
		dp_put_double(b, real_of(bt, f, type), sizeof(double));
	else if (type == BT_FIELD_CLASS_TYPE_STRING)
		dp_put_str(b, bt->field_string_get_value(f));
	else if (depth < DEEPEST && (type == BT_FIELD_CLASS_TYPE_STRUCTURE || type == BT_FIELD_CLASS_TYPE_STATIC_ARRAY ||
	                             bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_DYNAMIC_ARRAY)))
		put_list(bt, f, b, depth);
	else if (depth < DEEPEST && bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_VARIANT))
		put_text(bt, bt->field_variant_borrow_selected_option_field_const(f), b, depth + 1);
	else
		dp_put_str(b, "?");
}

static void put_string(const struct dp_babeltrace *bt, const bt_field *f, struct dp_buf *ret)
{
	struct dp_buf text;
	dp_buf_init(&text);
	put_text(bt, f, &text, 0);
	ret->failed |= text.failed;
	dp_buf_put(ret, dp_buf_str(&text), strnlen(dp_buf_str(&text), TEXT_MOST - 1));
	dp_buf_put(ret, "", 1);
	dp_buf_fini(&text);
}

static void put_value(const struct dp_babeltrace *bt, const bt_field *f, struct dp_buf *ret)
{
	const bt_field_class_type type = bt->field_get_class_type(f);
	if (is_real(type)) {
		const double v = real_of(bt, f, type);
		dp_buf_put(ret, &v, sizeof(v));
	} else if (is_signed(type)) {
		const int64_t v = bt->field_integer_signed_get_value(f);
		dp_buf_put(ret, &v, sizeof(v));
	} else if (is_unsigned(type)) {
		const uint64_t v = type == BT_FIELD_CLASS_TYPE_BOOL ? (uint64_t)bt->field_bool_get_value(f)
		                                                    : bt->field_integer_unsigned_get_value(f);
		dp_buf_put(ret, &v, sizeof(v));
	} else {
		put_string(bt, f, ret);
	}
}

static void put_members(const struct dp_babeltrace *bt, const bt_field *of, bool context, unsigned depth, struct dp_buf *ret)
{
	const bt_field_class *classes = of ? bt->field_borrow_class_const(of) : NULL;
	for (uint64_t i = 0; of && i < bt->field_class_structure_get_member_count(classes); i++) {
		const bt_field_class_structure_member *member =
		        bt->field_class_structure_borrow_member_by_index_const(classes, i);
		const bt_field *f = bt->field_structure_borrow_member_field_by_index_const(of, i);
		if (context && dp_foreign_names_thread(bt->field_class_structure_member_get_name(member)))
			continue;
		if (bt->field_get_class_type(f) == BT_FIELD_CLASS_TYPE_STRUCTURE && depth < DEEPEST)
			put_members(bt, f, false, depth + 1, ret);
		else
			put_value(bt, f, ret);
	}
}

void dp_foreign_payload(const struct dp_babeltrace *bt, const bt_event *event, struct dp_buf *ret)
{
	ret->len = 0;
	put_members(bt, bt->event_borrow_payload_field_const(event), false, 0, ret);
	put_members(bt, bt->event_borrow_specific_context_field_const(event), true, 0, ret);
	put_members(bt, bt->event_borrow_common_context_field_const(event), true, 0, ret);
}

#endif
