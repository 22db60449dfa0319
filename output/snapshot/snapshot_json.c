/* SPDX-License-Identifier: MIT */
/*
 * A snapshot as JSON: the tables of the file, with their names. Default values (false, 0, "", empty) are omitted, except for
 * members that every reader needs. Addresses and 64-bit values are strings, because many readers have only doubles. Only the
 * piece being written is kept in memory.
 */
#include "output/snapshot/snapshot_json_internal.h"

#include <math.h>
#include <string.h>
#include <time.h>
#include <utlist.h>

static void put_object(struct dp_json *j, const struct dp_store_record *r, const void *obj);

/* Keeps the last byte, which decides whether a comma comes next. */
void dp_json_flush(struct dp_json *j, size_t least)
{
	if (!j->to || j->b.len < least || !j->b.len || j->b.failed)
		return;
	const size_t n = j->b.len - 1;
	j->failed |= fwrite(j->b.data, 1, n, j->to) != n;
	j->b.data[0] = j->b.data[n];
	j->b.len = 1;
}

void dp_json_name(struct dp_json *j, const char *name)
{
	dp_put_str(&j->b, j->b.len && strchr("{[", j->b.data[j->b.len - 1]) ? "\"" : ",\"");
	dp_put_str(&j->b, name);
	dp_put_str(&j->b, "\":");
}

static void put_flag(struct dp_json *j, const char *name)
{
	dp_json_name(j, name);
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

static void put_quoted(struct dp_json *j, const char *name, uint64_t v, void (*put)(struct dp_buf *, uint64_t))
{
	dp_json_name(j, name);
	dp_put_str(&j->b, "\"");
	put(&j->b, v);
	dp_put_str(&j->b, "\"");
}

static void put_number(struct dp_json *j, const struct dp_store_row *row, const void *obj)
{
	const uint64_t n = uint_at((const char *)obj + row->offset, 8);
	if (n || row->always)
		put_quoted(j, row->name, n, dp_put_dec);
}

static void put_text(struct dp_json *j, const struct dp_store_row *row, const char *text)
{
	if (!text || (!*text && !row->always && row->keep != DP_STORE_TEXT_OR_NULL))
		return;
	dp_json_name(j, row->name);
	dp_put_json_str(&j->b, text);
}

static void put_comma(struct dp_json *j)
{
	dp_put_str(&j->b, j->b.len && j->b.data[j->b.len - 1] == '[' ? "" : ",");
}

static void put_texts(struct dp_json *j, const char *name, const char *const *text)
{
	if (!text)
		return;
	dp_json_name(j, name);
	dp_put_str(&j->b, "[");
	for (; *text; text++) {
		put_comma(j);
		dp_put_json_str(&j->b, *text);
	}
	dp_put_str(&j->b, "]");
}

static void put_words(struct dp_json *j, const struct dp_store_row *row, const struct dp_snap_word *list)
{
	const struct dp_snap_word *w;
	if (!list && !row->always)
		return;
	dp_json_name(j, row->name);
	dp_put_str(&j->b, "[");
	DL_FOREACH(list, w)
	{
		put_comma(j);
		dp_put_json_str(&j->b, w->text);
	}
	dp_put_str(&j->b, "]");
}

static void put_attributes(struct dp_json *j, const char *name, const struct dp_snap_pair *list)
{
	const struct dp_snap_pair *p;
	dp_json_name(j, name);
	dp_put_str(&j->b, "{");
	DL_FOREACH(list, p)
	{
		dp_put_str(&j->b, p == list ? "" : ",");
		dp_put_json_str(&j->b, p->key); /* arbitrary text, not one of our names */
		dp_put_str(&j->b, ":");
		if (p->is_int)
			dp_put_signed(&j->b, p->number);
		else
			dp_put_json_str(&j->b, p->text);
	}
	dp_put_str(&j->b, "}");
}

static void put_list(struct dp_json *j, const struct dp_store_row *row, const void *head)
{
	if (row->of == &dp_store_variable) {
		if (!j->without_values && (head || row->always))
			dp_json_variables(j, row->name, head, NULL);
		return;
	}
	if (!head && !row->always)
		return;
	dp_json_name(j, row->name);
	dp_put_str(&j->b, "[");
	for (const void *obj = head; obj; obj = pointer_at((const char *)obj + offsetof(struct dp_snap_note, next))) {
		dp_put_str(&j->b, obj == head ? "" : ",");
		put_object(j, row->of, obj);
	}
	dp_put_str(&j->b, "]");
}

static void put_array(struct dp_json *j, const struct dp_store_row *row, const void *obj)
{
	const char *first = pointer_at((const char *)obj + row->offset);
	const uint64_t n = first ? uint_at((const char *)obj + row->count, 8) : 0;
	if (!n && !row->always)
		return;
	dp_json_name(j, row->name);
	dp_put_str(&j->b, "[");
	for (uint64_t i = 0; i < n; i++) {
		dp_put_str(&j->b, i ? "," : "");
		put_object(j, row->of, first + i * row->of->size);
	}
	dp_put_str(&j->b, "]");
}

static void put_registers(struct dp_json *j, const char *name, const struct dp_frame_regs *r)
{
	if (!r || !r->known)
		return;
	dp_json_name(j, name);
	dp_put_str(&j->b, "{");
	for (unsigned i = 0; i < DP_DWARF_REGS; i++)
		if (r->known >> i & 1)
			put_quoted(j, dp_snap_register_name[i], r->value[i], dp_put_hex);
	dp_put_str(&j->b, "}");
}

static void put_plain(struct dp_json *j, const struct dp_store_row *row, const void *at)
{
	const uint64_t v = uint_at(at, row->size);
	const char letter = (char)v;
	if (!row->always && (row->keep == DP_STORE_CHAR ? (char)row->usual == letter : !v))
		return;
	if (row->keep == DP_STORE_HEX) {
		put_quoted(j, row->name, v, dp_put_hex);
		return;
	}
	dp_json_name(j, row->name);
	if (row->keep == DP_STORE_CHAR)
		dp_put_json(&j->b, &letter, letter != 0);
	else if (row->keep == DP_STORE_ENUM)
		dp_put_json_str(&j->b, row->words[v]);
	else
		dp_put_dec(&j->b, v);
}

static void put_int(struct dp_json *j, const struct dp_store_row *row, int64_t v)
{
	if (v == row->usual && !row->always)
		return;
	dp_json_name(j, row->name);
	dp_put_signed(&j->b, v);
}

static void put_nested(struct dp_json *j, const struct dp_store_row *row, const void *obj)
{
	const void *at = (const char *)obj + row->offset;
	if (row->keep == DP_STORE_ARRAY)
		put_array(j, row, obj);
	else if (row->keep == DP_STORE_REGISTERS)
		put_registers(j, row->name, at);
	else if (row->keep == DP_STORE_FRAME_REGISTERS)
		put_registers(j, row->name, pointer_at(at));
	else if (row->keep == DP_STORE_SUB && pointer_at(at)) {
		dp_json_name(j, row->name);
		put_object(j, row->of, pointer_at(at));
	} else if (row->of == &dp_store_pair)
		put_attributes(j, row->name, pointer_at(at));
	else if (row->keep == DP_STORE_LIST)
		put_list(j, row, pointer_at(at));
}

static void put_row(struct dp_json *j, const struct dp_store_row *row, const void *obj)
{
	const void *at = (const char *)obj + row->offset;
	switch ((enum dp_store_kind)row->keep) {
	case DP_STORE_BOOL:
		if (uint_at(at, row->size))
			put_flag(j, row->name);
		return;
	case DP_STORE_INT:
		put_int(j, row, int_at(at, row->size));
		return;
	case DP_STORE_NUMBER:
		put_number(j, row, obj);
		return;
	case DP_STORE_UINT:
	case DP_STORE_HEX:
	case DP_STORE_CHAR:
	case DP_STORE_ENUM:
		put_plain(j, row, at);
		return;
	case DP_STORE_ID:
	case DP_STORE_TEXT:
	case DP_STORE_TEXT_OR_NULL:
		put_text(j, row, row->keep == DP_STORE_ID ? at : pointer_at(at));
		return;
	case DP_STORE_TEXTS:
	case DP_STORE_TEXTS_OR_NULL:
		put_texts(j, row->name, pointer_at(at));
		return;
	case DP_STORE_WORDS:
		put_words(j, row, pointer_at(at));
		return;
	case DP_STORE_BLOB: /* the bytes stay in the file */
		dp_json_name(j, row->name);
		dp_put_dec(&j->b, uint_at((const char *)obj + row->count, 8));
		return;
	default:
		put_nested(j, row, obj);
	}
}

/* ---- members that are not in the tables */

static void put_time(struct dp_json *j, uint64_t ns)
{
	char text[32] = "";
	const time_t at = (time_t)(ns / 1000000000u);
	struct tm tm;
	if (!gmtime_r(&at, &tm) || !strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm))
		return;
	dp_json_name(j, "time");
	dp_buf_printf(&j->b, "\"%s.%09uZ\"", text, (unsigned)(ns % 1000000000u));
}

static void put_extra(struct dp_json *j, const struct dp_store_record *r, const void *obj)
{
	const struct dp_snapshot *s = obj;
	if (r == &dp_store_frame)
		dp_buf_printf(&j->b, "\"index\":%u", ((const struct dp_snap_frame *)obj)->index);
	if (r != &dp_store_snapshot)
		return;
	dp_put_str(&j->b, "\"format\":\"dynprobe-snapshot\",\"version\":2");
	put_time(j, s->time_ns);
}

static void put_object(struct dp_json *j, const struct dp_store_record *r, const void *obj)
{
	dp_put_str(&j->b, "{");
	put_extra(j, r, obj);
	for (size_t i = 0; i < r->n; i++)
		put_row(j, &r->row[i], obj);
	dp_put_str(&j->b, "}");
	dp_json_flush(j, DP_JSON_FULL);
}

void dp_json_notes(struct dp_json *j, const struct dp_snap_note *list)
{
	for (size_t i = 0; list && i < dp_store_variable.n; i++)
		if (dp_store_variable.row[i].of == &dp_store_note)
			put_list(j, &dp_store_variable.row[i], list);
}

static struct dp_error *fini(struct dp_json *j, struct dp_error *err)
{
	if (!err && (j->failed || j->b.failed))
		err = dp_error_sys(DP_TAG_OUTPUT, "cannot write the snapshot as JSON");
	dp_json_types_fini(j);
	dp_buf_fini(&j->b);
	dp_buf_fini(&j->value);
	return err;
}

/* The types come last, when all values have been written. An object's members have no order. */
struct dp_error *dp_snapshot_json(struct dp_snapshot *s, FILE *to)
{
	struct dp_json j = {.to = to};
	dp_snapshot_settle(s);
	put_object(&j, &dp_store_snapshot, s);
	j.b.len -= j.b.len > 0; /* its closing bracket */
	dp_json_name(&j, "types");
	dp_json_types(&j);
	dp_put_str(&j.b, "}\n");
	j.failed |= j.b.failed || fwrite(j.b.data, 1, j.b.len, j.to) != j.b.len || fflush(to);
	return fini(&j, NULL);
}

/* ---- in parts */

static struct dp_error *give(struct dp_json *j, const struct dp_json_sink *to)
{
	DP_TRY(j->failed || j->b.failed ? dp_error_nomem() : NULL);
	DP_TRY(to->take(to->of, j->b.data, j->b.len));
	j->b.len = 0;
	return NULL;
}

static void put_values(struct dp_json *j, const struct dp_snap_thread *t)
{
	dp_put_str(&j->b, "{");
	dp_json_variables(j, "variables", t->variables, NULL);
	dp_json_name(j, "frames");
	dp_put_str(&j->b, "[");
	for (const struct dp_snap_frame *f = t->frames; f; f = f->next) {
		dp_put_str(&j->b, f == t->frames ? "" : ",");
		dp_json_variables(j, NULL, f->variables, NULL);
	}
	dp_put_str(&j->b, "]}");
}

static struct dp_error *give_parts(struct dp_json *j, const struct dp_snapshot *s, const struct dp_json_sink *to)
{
	const struct dp_snap_thread *t;
	j->without_values = true;
	put_object(j, &dp_store_snapshot, s);
	DP_TRY(give(j, to));
	dp_json_variables(j, NULL, s->globals, NULL);
	DP_TRY(give(j, to));
	DL_FOREACH(s->threads, t)
	{
		put_values(j, t);
		DP_TRY(give(j, to));
	}
	dp_json_types(j);
	return give(j, to);
}

struct dp_error *dp_snapshot_json_parts(struct dp_snapshot *s, const struct dp_json_sink *to)
{
	struct dp_json j = {0};
	dp_snapshot_settle(s);
	return fini(&j, give_parts(&j, s, to));
}
