/* SPDX-License-Identifier: MIT */
/*
 * A snapshot as JSON: the tables of the file, by their names. What is as usual (false, 0, "", nothing) is left out, but for what
 * every reader looks for. Addresses and 64-bit values are texts: many readers have only doubles.
 */
#include "output/put.h"
#include "output/show.h"
#include "pmodules/file_table.h"

#include <math.h>
#include <string.h>
#include <time.h>
#include <utlist.h>

enum { FULL = 1 << 16 };

struct json {
	struct dp_buf b;
	FILE *to;
	unsigned depth; /* of variables */
	bool failed;
};

static void put_object(struct json *j, const struct dp_keep_record *r, const void *obj);

static void flush(struct json *j, size_t least)
{
	if (j->b.len < least)
		return;
	j->failed |= j->b.failed || fwrite(j->b.data, 1, j->b.len, j->to) != j->b.len;
	j->b.len = 0;
}

static void put_name(struct json *j, const char *name)
{
	const char last = j->b.len ? (char)j->b.data[j->b.len - 1] : '{';
	dp_put_str(&j->b, last == '{' ? "" : ",");
	dp_put_json_str(&j->b, name);
	dp_put_str(&j->b, ":");
}

static void put_flag(struct json *j, const char *name)
{
	put_name(j, name);
	dp_put_str(&j->b, "true");
}

static const void *pointer_at(const void *at)
{
	const void *p;
	memcpy(&p, at, sizeof(p));
	return p;
}

static uint64_t uint_at(const void *at, size_t size)
{
	uint64_t v = 0;
	memcpy(&v, at, size);
	return v;
}

static int64_t int_at(const void *at, size_t size)
{
	const unsigned shift = 64 - 8 * (unsigned)size;
	return (int64_t)(uint_at(at, size) << shift) >> shift;
}

static void put_quoted(struct json *j, const char *name, uint64_t v, void (*put)(struct dp_buf *, uint64_t))
{
	put_name(j, name);
	dp_put_str(&j->b, "\"");
	put(&j->b, v);
	dp_put_str(&j->b, "\"");
}

static void put_as_signed(struct dp_buf *b, uint64_t v)
{
	dp_put_signed(b, (int64_t)v);
}

static void put_number(struct json *j, const struct dp_keep_record *r, const struct dp_keep_row *row, const void *obj)
{
	const struct dp_snap_variable *v = obj;
	const uint64_t n = uint_at((const char *)obj + row->offset, 8);
	const bool is_signed = r == &dp_keep_variable && (v->kind == DP_VAR_LL || v->kind == DP_VAR_ENUM);
	if (n || row->always)
		put_quoted(j, row->name, n, is_signed ? put_as_signed : dp_put_dec);
}

/* JSON has no word for what is no number. */
static void put_real(struct json *j, const char *name, const void *at)
{
	double v;
	memcpy(&v, at, sizeof(v));
	if (v == 0 && !signbit(v))
		return;
	put_name(j, name);
	const bool is_number = isfinite(v);
	dp_put_str(&j->b, is_number ? "" : "\"");
	dp_put_double(&j->b, v, 8);
	dp_put_str(&j->b, is_number ? "" : "\"");
}

static void put_text(struct json *j, const struct dp_keep_row *row, const char *text)
{
	if (!text || (!*text && !row->always && row->keep != DP_KEEP_TEXT_OR_NULL))
		return;
	put_name(j, row->name);
	dp_put_json_str(&j->b, text);
}

/* What JSON's texts cannot hold is there once more, as bytes. */
static bool is_lossy(const struct dp_buf *b, size_t from)
{
	return b->len > from && memmem(b->data + from, b->len - from, "\xef\xbf\xbd", 3);
}

static void put_string(struct json *j, const struct dp_keep_row *row, const struct dp_snap_variable *v)
{
	const size_t n = !v->text ? 0 : v->is_string ? v->text_size : strlen(v->text), before = j->b.len;
	if (!v->text)
		return;
	put_name(j, row->name);
	dp_put_json(&j->b, v->text, n);
	if (!is_lossy(&j->b, before))
		return;
	put_name(j, "text_hex");
	dp_put_str(&j->b, "\"");
	dp_put_hexdump(&j->b, (const uint8_t *)v->text, n);
	dp_put_str(&j->b, "\"");
}

static void put_comma(struct json *j)
{
	dp_put_str(&j->b, j->b.len && j->b.data[j->b.len - 1] == '[' ? "" : ",");
}

static void put_texts(struct json *j, const char *name, const char *const *text)
{
	if (!text)
		return;
	put_name(j, name);
	dp_put_str(&j->b, "[");
	for (; *text; text++) {
		put_comma(j);
		dp_put_json_str(&j->b, *text);
	}
	dp_put_str(&j->b, "]");
}

static void put_words(struct json *j, const struct dp_keep_row *row, const struct dp_snap_word *list)
{
	const struct dp_snap_word *w;
	if (!list && !row->always)
		return;
	put_name(j, row->name);
	dp_put_str(&j->b, "[");
	DL_FOREACH(list, w)
	{
		put_comma(j);
		dp_put_json_str(&j->b, w->text);
	}
	dp_put_str(&j->b, "]");
}

static void put_attributes(struct json *j, const char *name, const struct dp_snap_pair *list)
{
	const struct dp_snap_pair *p;
	put_name(j, name);
	dp_put_str(&j->b, "{");
	DL_FOREACH(list, p)
	{
		put_name(j, p->key);
		if (p->is_int)
			dp_put_signed(&j->b, p->number);
		else
			dp_put_json_str(&j->b, p->text);
	}
	dp_put_str(&j->b, "}");
}

static void put_list(struct json *j, const struct dp_keep_row *row, const void *head)
{
	const bool variables = row->of == &dp_keep_variable;
	if ((!head && !row->always) || (variables && j->depth == DP_KEEP_DEPTH))
		return;
	j->depth += variables;
	put_name(j, row->name);
	dp_put_str(&j->b, "[");
	for (const void *obj = head; obj; obj = pointer_at((const char *)obj + offsetof(struct dp_snap_note, next))) {
		dp_put_str(&j->b, obj == head ? "" : ",");
		put_object(j, row->of, obj);
	}
	dp_put_str(&j->b, "]");
	j->depth -= variables;
}

static void put_array(struct json *j, const struct dp_keep_row *row, const void *obj)
{
	const char *first = pointer_at((const char *)obj + row->offset);
	const uint64_t n = first ? uint_at((const char *)obj + row->count, 8) : 0;
	if (!n && !row->always)
		return;
	put_name(j, row->name);
	dp_put_str(&j->b, "[");
	for (uint64_t i = 0; i < n; i++) {
		dp_put_str(&j->b, i ? "," : "");
		put_object(j, row->of, first + i * row->of->size);
	}
	dp_put_str(&j->b, "]");
}

static void put_registers(struct json *j, const char *name, const struct dp_snap_registers *r)
{
	if (!r || !r->known)
		return;
	put_name(j, name);
	dp_put_str(&j->b, "{");
	for (unsigned i = 0; i < DP_SNAP_REGS; i++)
		if (r->known >> i & 1)
			put_quoted(j, dp_snap_register_name[i], r->value[i], dp_put_hex);
	dp_put_str(&j->b, "}");
}

static void put_plain(struct json *j, const struct dp_keep_row *row, const void *at)
{
	const uint64_t v = uint_at(at, row->size);
	const char letter = (char)v;
	if (!row->always && (row->keep == DP_KEEP_CHAR ? (char)row->usual == letter : !v))
		return;
	if (row->keep == DP_KEEP_HEX) {
		put_quoted(j, row->name, v, dp_put_hex);
		return;
	}
	put_name(j, row->name);
	if (row->keep == DP_KEEP_CHAR)
		dp_put_json(&j->b, &letter, letter != 0);
	else if (row->keep == DP_KEEP_ENUM)
		dp_put_json_str(&j->b, row->words[v]);
	else
		dp_put_dec(&j->b, v);
}

static void put_int(struct json *j, const struct dp_keep_row *row, int64_t v)
{
	if (v == row->usual && !row->always)
		return;
	put_name(j, row->name);
	dp_put_signed(&j->b, v);
}

static void put_nested(struct json *j, const struct dp_keep_row *row, const void *obj)
{
	const void *at = (const char *)obj + row->offset;
	if (row->keep == DP_KEEP_ARRAY)
		put_array(j, row, obj);
	else if (row->keep == DP_KEEP_REGISTERS)
		put_registers(j, row->name, at);
	else if (row->keep == DP_KEEP_FRAME_REGISTERS)
		put_registers(j, row->name, pointer_at(at));
	else if (row->keep == DP_KEEP_SUB && pointer_at(at)) {
		put_name(j, row->name);
		put_object(j, row->of, pointer_at(at));
	} else if (row->of == &dp_keep_pair)
		put_attributes(j, row->name, pointer_at(at));
	else if (row->keep == DP_KEEP_LIST)
		put_list(j, row, pointer_at(at));
}

static void put_row(struct json *j, const struct dp_keep_record *r, const struct dp_keep_row *row, const void *obj)
{
	const void *at = (const char *)obj + row->offset;
	switch ((enum dp_keep)row->keep) {
	case DP_KEEP_BOOL:
		if (uint_at(at, row->size))
			put_flag(j, row->name);
		return;
	case DP_KEEP_INT:
		put_int(j, row, int_at(at, row->size));
		return;
	case DP_KEEP_NUMBER:
		put_number(j, r, row, obj);
		return;
	case DP_KEEP_UINT:
	case DP_KEEP_HEX:
	case DP_KEEP_CHAR:
	case DP_KEEP_ENUM:
		put_plain(j, row, at);
		return;
	case DP_KEEP_REAL:
		put_real(j, row->name, at);
		return;
	case DP_KEEP_ID:
	case DP_KEEP_TEXT:
	case DP_KEEP_TEXT_OR_NULL:
		put_text(j, row, row->keep == DP_KEEP_ID ? at : pointer_at(at));
		return;
	case DP_KEEP_STRING:
		put_string(j, row, obj);
		return;
	case DP_KEEP_TEXTS:
	case DP_KEEP_TEXTS_OR_NULL:
		put_texts(j, row->name, pointer_at(at));
		return;
	case DP_KEEP_WORDS:
		put_words(j, row, pointer_at(at));
		return;
	case DP_KEEP_BLOB: /* the bytes stay in the file */
		put_name(j, row->name);
		dp_put_dec(&j->b, uint_at((const char *)obj + row->count, 8));
		return;
	default:
		put_nested(j, row, obj);
	}
}

/* ---- what is not in the tables */

static void put_time(struct json *j, uint64_t ns)
{
	char text[32] = "";
	const time_t at = (time_t)(ns / 1000000000u);
	struct tm tm;
	if (!gmtime_r(&at, &tm) || !strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm))
		return;
	put_name(j, "time");
	dp_buf_printf(&j->b, "\"%s.%09uZ\"", text, (unsigned)(ns % 1000000000u));
}

static void put_value(struct json *j, const struct dp_snap_variable *v)
{
	struct dp_buf text = {0};
	dp_show_value(&text, v);
	put_name(j, "value");
	dp_put_json(&j->b, dp_buf_str(&text), text.len);
	j->failed |= text.failed;
	dp_buf_fini(&text);
}

static void put_extra(struct json *j, const struct dp_keep_record *r, const void *obj)
{
	const struct dp_snapshot *s = obj;
	if (r == &dp_keep_variable)
		put_value(j, obj);
	if (r == &dp_keep_frame)
		dp_buf_printf(&j->b, "\"index\":%u", ((const struct dp_snap_frame *)obj)->index);
	if (r != &dp_keep_snapshot)
		return;
	dp_put_str(&j->b, "\"format\":\"dynprobe-snapshot\",\"version\":1");
	put_time(j, s->time_ns);
}

static void put_object(struct json *j, const struct dp_keep_record *r, const void *obj)
{
	dp_put_str(&j->b, "{");
	put_extra(j, r, obj);
	for (size_t i = 0; i < r->n; i++)
		put_row(j, r, &r->row[i], obj);
	dp_put_str(&j->b, "}");
	/* The last byte says whether a comma comes next. */
	if (j->b.len > FULL && !j->b.failed) {
		j->b.len--;
		flush(j, 0);
		dp_put_str(&j->b, "}");
	}
}

struct dp_error *dp_snapshot_json(struct dp_snapshot *s, FILE *to)
{
	struct json j = {.to = to};
	dp_snapshot_settle(s);
	put_object(&j, &dp_keep_snapshot, s);
	dp_put_str(&j.b, "\n");
	flush(&j, 1);
	dp_buf_fini(&j.b);
	if (j.failed || fflush(to))
		return dp_error_sys(DP_TAG_OUTPUT, "cannot write the snapshot as JSON");
	return NULL;
}
