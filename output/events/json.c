/* SPDX-License-Identifier: MIT */
/* NDJSON (docs/json.md): a header line, then a line per event. */
#include "output/calls/pairs.h"
#include "output/events/frames.h"
#include "output/events/lines.h"
#include "output/events/message.h"
#include "output/events/writer.h"
#include "output/format/put.h"

#include <stdlib.h>
#include <string.h>

enum { JSON_VERSION = 1 };

struct json {
	struct dp_writer base;
	struct dp_lines lines;
	struct dp_stamp stamp;
	struct dp_heads heads;    /* all from the thread to the first field */
	struct dp_pieces *pieces; /* of each class: keys of fields */
	struct dp_buf unreadable, absent, message;
	struct dp_call_pairs *pairs; /* NULL: no class is about system calls */
	/* Of the event being written. */
	struct dp_image *image;
	const struct dp_event_class *class;
	const struct dp_pieces *piece;
};

/* A line that is no event: the reader gets it with the next flush of the stream. */
static void print(struct json *j)
{
	dp_put_str(&j->lines.b, "\n");
	dp_lines_end(&j->lines, &j->base);
	dp_lines_pass_on(&j->lines, &j->base);
}

/* ,"key":  (or {"key": for the first one) */
static void put_key(struct dp_buf *b, const char *before, const char *key)
{
	dp_put_str(b, before);
	dp_put_json_str(b, key);
	dp_put_str(b, ":");
}

/* ---- header ---- */

/* Describes a field in the program's terms: what was typed, and the names of values. */
static void put_meaning(struct dp_buf *b, const struct dp_field *f)
{
	static const char *const looks[] = {[DP_DISPLAY_BOOL] = "bool",
	                                    [DP_DISPLAY_CHAR] = "char",
	                                    [DP_DISPLAY_RESULT] = "result",
	                                    [DP_DISPLAY_CALL] = "call",
	                                    [DP_DISPLAY_DURATION] = "duration"};
	if (f->label) {
		put_key(b, ",", "label");
		dp_put_json_str(b, f->label);
	}
	if (f->display != DP_DISPLAY_NUMBER && !dp_display_is_wide(f->display)) {
		put_key(b, ",", "look");
		dp_put_json_str(b, looks[f->display]);
	}
	if (!f->names)
		return;
	put_key(b, ",", "names");
	for (size_t i = 0; i < f->names->n; i++) {
		put_key(b, i ? "," : "{", f->names->item[i].name);
		dp_put_signed(b, (int64_t)f->names->item[i].value);
	}
	dp_put_str(b, f->names->n ? "}" : "{}");
}

static void put_type(struct dp_buf *b, const struct dp_field *f)
{
	static const char *const named[] = {
	        [DP_TYPE_INT] = "int",
	        [DP_TYPE_UINT] = "uint",
	        [DP_TYPE_FLOAT] = "float",
	        [DP_TYPE_POINTER] = "pointer",
	        [DP_TYPE_STRING] = "string",
	        [DP_TYPE_BYTES] = "bytes",
	        [DP_TYPE_BACKTRACE] = "backtrace",
	};
	static const char *const wide[] = {
	        [DP_DISPLAY_INT128] = "int128", [DP_DISPLAY_UINT128] = "uint128", [DP_DISPLAY_LONG_DOUBLE] = "long double"};
	bool sized = f->type == DP_TYPE_INT || f->type == DP_TYPE_UINT;
	bool is_wide = dp_display_is_wide(f->display);
	bool limited = f->type == DP_TYPE_STRING || f->type == DP_TYPE_BYTES || f->type == DP_TYPE_BACKTRACE;
	bool is_double = f->type == DP_TYPE_FLOAT && f->size == sizeof(double);
	put_key(b, ",", "type");
	dp_put_str(b, "\"");
	dp_put_str(b, is_wide ? wide[f->display] : is_double ? "double" : named[f->type]);
	if (sized)
		dp_put_dec(b, f->size * 8u);
	dp_put_str(b, "\"");
	if (sized && f->hex)
		dp_put_str(b, ",\"hex\":true");
	put_meaning(b, f);
	if (!limited || is_wide)
		return;
	put_key(b, ",", "size");
	dp_put_dec(b, f->size);
}

static void put_title(struct dp_buf *b, const struct dp_event_class *class)
{
	if (!class->title)
		return;
	put_key(b, ",", "title");
	dp_put_json_str(b, class->title);
}

static void put_class(struct dp_buf *b, const struct dp_event_class *class)
{
	put_key(b, "{", "name");
	dp_put_json_str(b, class->name);
	put_title(b, class);
	put_key(b, ",", "spec");
	dp_put_json_str(b, class->spec ? class->spec : "");
	if (class->is_call) {
		put_key(b, ",", "args");
		dp_put_dec(b, class->nargs);
	}
	put_key(b, ",", "fields");
	dp_put_str(b, "[");
	for (size_t i = 0; i < class->fields->n; i++) {
		put_key(b, i ? ",{" : "{", "name");
		dp_put_json_str(b, class->fields->field[i].name);
		put_type(b, &class->fields->field[i]);
		dp_put_str(b, "}");
	}
	dp_put_str(b, "]}");
}

static void put_header(struct json *j)
{
	struct dp_buf *b = &j->lines.b;
	dp_put_str(b, "{\"type\":\"header\",\"version\":");
	dp_put_dec(b, JSON_VERSION);
	dp_put_str(b, ",\"generator\":\"dynprobe\",\"clock\":{\"name\":\"monotonic\",\"offset_ns\":");
	dp_put_signed(b, dp_clock_offset());
	dp_put_str(b, "},\"probes\":[");
	for (size_t i = 0, n = 0; i < j->base.n; i++) {
		if (j->base.classes[i].joined) /* its fields are in another class's events */
			continue;
		dp_put_str(b, n++ ? "," : "");
		put_class(b, &j->base.classes[i]);
	}
	dp_put_str(b, "]}");
	print(j);
}

/* ---- events ---- */

static void put_hex_string(struct dp_buf *b, uint64_t v)
{
	dp_put_str(b, "\"");
	dp_put_hex(b, v);
	dp_put_str(b, "\"");
}

static void put_sources(struct dp_buf *b, const struct dp_known_frame *frame, unsigned *number)
{
	const struct dp_source source = dp_source_of(frame->asked);
	++*number;
	dp_put_source_json(b, &source);
}

static void put_frame(size_t i, const struct dp_known_frame *frame, void *data)
{
	struct json *j = data;
	struct dp_buf *b = &j->lines.b;
	put_key(b, i ? ",{" : "{", "addr");
	put_hex_string(b, frame->pc);
	if (frame->text[0]) {
		put_key(b, ",", "symbol");
		dp_put_json_str(b, frame->text);
	}
	dp_lines_put_frame(&j->lines, frame);
	if (frame->by_pointer)
		dp_put_str(b, ",\"by_frame_pointer\":true");
	dp_put_str(b, "}");
}

/* JSON has no infinities and no nan: they are written as strings. */
static void put_float(struct dp_buf *b, const struct dp_field *field, const struct dp_field_value *v)
{
	const char *quote = __builtin_isfinite(v->f) ? "" : "\"";
	dp_put_str(b, quote);
	dp_put_double(b, v->f, field->size);
	dp_put_str(b, quote);
}

/* Values that are no JSON number ("nan") are written as strings. */
static bool put_wide(struct dp_buf *b, const struct dp_field *field, const struct dp_field_value *v)
{
	struct dp_buf text;
	dp_buf_init(&text);
	const bool is_wide = dp_put_wide(&text, field->display, v->bytes);
	const char *word = is_wide ? dp_buf_str(&text) : "",
	           *quote = word[0] && strchr("0123456789", word[strlen(word) - 1]) ? "" : "\"";
	if (is_wide) {
		dp_put_str(b, quote);
		dp_put_str(b, word);
		dp_put_str(b, quote);
	}
	b->failed |= text.failed;
	dp_buf_fini(&text);
	return is_wide;
}

/* Enumerations by name, bools as such. A value without a name stays a number. */
static bool put_special(struct dp_buf *b, const struct dp_field *field, const struct dp_field_value *v)
{
	const size_t before = b->len;
	if (field->display == DP_DISPLAY_BOOL && v->u < 2) {
		dp_put_str(b, v->u ? "true" : "false");
		return true;
	}
	if (!field->names && field->display < DP_DISPLAY_RESULT)
		return false;
	dp_put_str(b, "\"");
	if (field->names ? dp_put_enumerator(b, field->names, v->u) : dp_put_call_display(b, field->display, v->u)) {
		dp_put_str(b, "\"");
		return true;
	}
	b->len = before;
	return false;
}

static void put_value(struct json *j, const struct dp_field *field, const struct dp_field_value *v)
{
	struct dp_buf *b = &j->lines.b;
	const bool plain = !field->names && field->display == DP_DISPLAY_NUMBER;
	if (!plain && put_special(b, field, v))
		return;
	switch (field->type) {
	case DP_TYPE_INT:
	case DP_TYPE_UINT:
	case DP_TYPE_POINTER:
		if (field->hex || field->type == DP_TYPE_POINTER)
			put_hex_string(b, v->u);
		else if (field->type == DP_TYPE_INT)
			dp_put_signed(b, (int64_t)v->u);
		else
			dp_put_dec(b, v->u);
		break;
	case DP_TYPE_FLOAT:
		put_float(b, field, v);
		break;
	case DP_TYPE_STRING:
		dp_put_json(b, v->bytes, v->n);
		break;
	case DP_TYPE_BYTES:
		if (v->n == 16 && put_wide(b, field, v))
			break;
		dp_put_str(b, "\"");
		dp_put_hexdump(b, v->bytes, v->n);
		dp_put_str(b, "\"");
		break;
	case DP_TYPE_BACKTRACE:
		dp_put_str(b, "[");
		dp_known_frames_each(j->lines.known, j->image, v, put_frame, j);
		dp_put_str(b, "]");
		break;
	}
}

/* For the lists at the line's end. */
static void note_missing(struct json *j, const struct dp_field *field)
{
	if (field->source == DP_SRC_NONE && field->absent) {
		put_key(&j->absent, j->absent.len ? "," : "", field->name);
		dp_put_json_str(&j->absent, field->absent);
	} else {
		dp_put_str(&j->unreadable, j->unreadable.len ? "," : "");
		dp_put_json_str(&j->unreadable, field->name);
	}
	j->lines.b.failed |= j->absent.failed || j->unreadable.failed;
}

static void put_field(const struct dp_field *field, const struct dp_field_value *v, void *data)
{
	struct json *j = data;
	dp_pieces_put(j->piece, (size_t)(field - j->class->fields->field), &j->lines.b);
	if (!v->unreadable) {
		put_value(j, field, v);
		return;
	}
	dp_put_str(&j->lines.b, "null");
	if (!v->is_null)
		note_missing(j, field);
}

static void put_integer(struct dp_buf *b, const char *key, int64_t v)
{
	put_key(b, ",", key);
	dp_put_signed(b, v);
}

static void put_times(struct json *j, uint64_t mono)
{
	const uint64_t ns[] = {mono + (uint64_t)dp_clock_offset(), mono};
	static const char *const key[] = {"{\"type\":\"event\",\"ts\":", ",\"mono\":"};
	const bool early = (int64_t)ns[0] < DP_NS_PER_SECOND || (int64_t)ns[1] < DP_NS_PER_SECOND;
	if (dp_stamp_put(&j->stamp, ns, &j->lines.b))
		return;
	dp_stamp_clear(&j->stamp);
	for (size_t i = 0; i < 2; i++) {
		struct dp_buf *b = early ? &j->lines.b : &j->stamp.text;
		dp_put_str(b, key[i]);
		dp_put_signed(b, (int64_t)ns[i] / (early ? 1 : DP_NS_PER_SECOND));
		if (!early)
			dp_stamp_add(&j->stamp, ns[i]);
	}
	dp_stamp_put(&j->stamp, ns, &j->lines.b);
}

static void put_head(struct dp_buf *b, const struct dp_event *e, const void *data)
{
	const struct dp_event_class *class = data;
	put_integer(b, "pid", e->pid);
	put_integer(b, "tid", e->tid);
	if (e->inner_pid && e->inner_pid != e->pid)
		put_integer(b, "inner_pid", e->inner_pid);
	if (e->inner_tid && e->inner_tid != e->tid)
		put_integer(b, "inner_tid", e->inner_tid);
	put_key(b, ",", "comm");
	dp_put_json_str(b, e->comm ? e->comm : "");
	put_key(b, ",", "probe");
	dp_put_json_str(b, class->name);
	put_title(b, class);
	dp_put_str(b, ",\"fields\":{");
}

static bool make_pieces(struct dp_pieces *p, const struct dp_fields *fields)
{
	if (!dp_pieces_begin(p, fields->n + 1))
		return false;
	for (size_t i = 0; i < fields->n; i++) {
		put_key(&p->text, i ? "," : "", fields->field[i].name);
		dp_pieces_end(p);
	}
	return !p->text.failed;
}

static const struct dp_pieces *pieces_of(struct json *j, unsigned probe)
{
	struct dp_pieces *p = &j->pieces[probe];
	if (p->end || make_pieces(p, j->base.classes[probe].fields))
		return p;
	dp_pieces_fini(p);
	dp_writer_fail(&j->base, dp_error_nomem());
	return NULL;
}

static void put_message(struct json *j, const struct dp_event *e)
{
	j->message.len = 0;
	dp_put_message(&j->message, j->class, dp_writer_decoder(&j->base, e), e);
	put_key(&j->lines.b, ",", "message");
	dp_put_json(&j->lines.b, dp_buf_str(&j->message), j->message.len);
	j->lines.b.failed |= j->message.failed;
}

/* ,"key":[...] or {...}, and empties the list. */
static void put_list(struct json *j, const char *key, const char *brackets, struct dp_buf *list)
{
	if (list->len) {
		put_key(&j->lines.b, ",", key);
		dp_buf_put(&j->lines.b, &brackets[0], 1);
		dp_buf_put(&j->lines.b, list->data, list->len);
		dp_buf_put(&j->lines.b, &brackets[1], 1);
	}
	list->len = 0;
}

static void put_call(struct json *j, const struct dp_event *e)
{
	struct dp_call_seen seen, entry;
	dp_call_pairs_see(j->pairs, e, &seen);
	if (!seen.exit) {
		dp_put_call_json(&j->lines.b, &(struct dp_call_line){.entry = &seen, .nr = seen.nr});
		if (!dp_call_never_returns(seen.nr))
			dp_call_pairs_hold(j->pairs, e, seen.nr);
		return;
	}
	const struct dp_held_call *h = dp_call_pairs_match(j->pairs, e, &seen, &entry);
	const struct dp_call_line line = dp_call_line_of(e, &seen, h, &entry);
	dp_put_call_json(&j->lines.b, &line);
	dp_call_pairs_end(j->pairs, h);
}

static void json_gap(struct dp_writer *w)
{
	struct json *j = (struct json *)w;
	if (j->pairs)
		dp_call_pairs_gap(j->pairs);
}

static void json_event(struct dp_writer *w, const struct dp_event *e)
{
	struct json *j = (struct json *)w;
	struct dp_buf *b = &j->lines.b;
	j->class = &w->classes[e->probe];
	dp_known_frames_look_up(j->lines.known, w->sources);
	j->image = e->image;
	j->piece = pieces_of(j, e->probe);
	if (!j->piece)
		return;
	put_times(j, e->ns);
	dp_heads_put(&j->heads, e, put_head, j->class, b);
	dp_decoder_run(dp_writer_decoder(w, e), e->payload, e->len, put_field, j);
	dp_put_str(b, e->unseen ? "},\"entry_seen\":false" : "}");
	if (j->class->form)
		put_message(j, e);
	if (j->pairs && dp_call_pairs_takes(j->pairs, e->probe))
		put_call(j, e);
	if (j->unreadable.len || j->absent.len) {
		put_list(j, "unreadable", "[]", &j->unreadable);
		put_list(j, "absent", "{}", &j->absent);
	}
	dp_put_str(b, "}\n");
	dp_lines_end(&j->lines, w);
}

static void json_note(struct dp_writer *w, const char *text)
{
	struct json *j = (struct json *)w;
	put_key(&j->lines.b, "{\"type\":\"note\",", "text");
	dp_put_json_str(&j->lines.b, text);
	dp_put_str(&j->lines.b, "}");
	print(j);
}

static void json_known(struct dp_writer *w, unsigned i)
{
	struct json *j = (struct json *)w;
	dp_pieces_fini(&j->pieces[i]);
	dp_heads_clear(&j->heads);
	if (j->pairs)
		dp_call_pairs_renew(j->pairs, i);
	dp_put_str(&j->lines.b, "{\"type\":\"probe\",\"probe\":");
	put_class(&j->lines.b, &w->classes[i]);
	dp_put_str(&j->lines.b, "}");
	print(j);
}

static void json_flush(struct dp_writer *w)
{
	dp_lines_flush(&((struct json *)w)->lines, w);
}

static void json_fini(struct dp_writer *w)
{
	struct json *j = (struct json *)w;
	dp_lines_finish(&j->lines, w);
	for (size_t i = 0; i < w->n; i++)
		dp_pieces_fini(&j->pieces[i]);
	free(j->pieces);
	dp_heads_fini(&j->heads);
	dp_lines_fini(&j->lines);
	dp_stamp_fini(&j->stamp);
	dp_buf_fini(&j->unreadable);
	dp_buf_fini(&j->absent);
	dp_buf_fini(&j->message);
	dp_call_pairs_destroy(j->pairs);
}

struct dp_error *dp_json_writer_create(FILE *to, const struct dp_event_class *classes, size_t n, struct dp_writer **ret)
{
	static const struct dp_writer_ops ops = {.event = json_event,
	                                         .known = json_known,
	                                         .note = json_note,
	                                         .gap = json_gap,
	                                         .flush = json_flush,
	                                         .fini = json_fini};
	struct json *j = calloc(1, sizeof(*j));
	struct dp_pieces *pieces = calloc(n + 1, sizeof(*pieces));
	if (j && pieces && dp_classes_have_calls(classes, n))
		j->pairs = dp_call_pairs_create(classes, n);
	if (!j || !pieces || (dp_classes_have_calls(classes, n) && !j->pairs) ||
	    !dp_lines_init(&j->lines, to, false, put_sources)) {
		free(j);
		free(pieces);
		return dp_error_nomem();
	}
	j->base = (struct dp_writer){.ops = &ops, .classes = classes, .n = n};
	j->pieces = pieces;
	put_header(j);
	*ret = &j->base;
	return NULL;
}
