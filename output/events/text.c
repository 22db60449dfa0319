/* SPDX-License-Identifier: MIT */
/* Live text: a line per event, with backtraces on indented lines below it. */
#include "agent/abi.h"
#include "output/calls/call_stream.h"
#include "output/events/frames.h"
#include "output/events/lines.h"
#include "output/events/message.h"
#include "output/events/writer.h"
#include "output/format/put.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct text {
	struct dp_writer base;
	struct dp_lines lines;
	bool color;
	pid_t pid; /* of the first event */
	bool many; /* events of several processes have been seen */
	struct dp_stamp stamp;
	struct dp_heads heads;    /* threads and names */
	struct dp_pieces *pieces; /* of each class: names of fields */
	struct dp_buf message;
	struct below { /* frames of the event being written */
		const struct dp_known_frame *frame;
		bool first; /* of a backtrace */
	} * below;
	size_t nbelow, capacity;
	struct dp_call_stream *calls; /* NULL: no class is about system calls */
	bool in_line;           /* of a call: its fields are in the line already */
	/* Of the event being written. */
	struct dp_image *image;
	const struct dp_event_class *class;
	const struct dp_pieces *piece;
	bool unseen, closed; /* of a whole call: its arguments are unknown; they are written */
};

#define DIM   "\033[2m"
#define NAME  "\033[1;36m"
#define RED   "\033[31m"
#define RESET "\033[0m"

static void put_colored(const struct text *t, struct dp_buf *b, const char *color, const char *s)
{
	if (t->color)
		dp_put_str(b, color);
	dp_put_str(b, s);
	if (t->color)
		dp_put_str(b, RESET);
}

/* The time of day; calls localtime_r() once per second of events. */
static void put_time(struct text *t, uint64_t monotonic)
{
	const uint64_t wall = monotonic + (uint64_t)dp_clock_offset();
	const time_t second = (time_t)(wall / DP_NS_PER_SECOND);
	char hms[16] = "";
	struct tm tm;
	if (dp_stamp_put(&t->stamp, &wall, &t->lines.b))
		return;
	if (localtime_r(&second, &tm))
		strftime(hms, sizeof(hms), "%H:%M:%S", &tm);
	dp_stamp_clear(&t->stamp);
	dp_put_str(&t->stamp.text, t->color ? DIM : "");
	dp_put_str(&t->stamp.text, hms);
	dp_put_str(&t->stamp.text, ".");
	dp_stamp_add(&t->stamp, wall);
	dp_put_str(&t->stamp.text, t->color ? RESET : "");
	dp_stamp_put(&t->stamp, &wall, &t->lines.b);
}

static void put_head(struct dp_buf *b, const struct dp_event *e, const void *data)
{
	const struct text *t = data;
	dp_put_str(b, " ");
	dp_put_visible(b, e->comm ? e->comm : "", e->comm ? strlen(e->comm) : 0, 0);
	dp_put_str(b, "[");
	if (t->many) {
		dp_put_signed(b, e->pid);
		dp_put_str(b, "/");
	}
	dp_put_signed(b, e->tid);
	dp_put_str(b, "] ");
	if (t->in_line)
		return;
	put_colored(t, b, NAME, t->class->title ? t->class->title : t->class->name);
	dp_put_str(b, !t->class->is_call && (t->class->fields->n || t->class->form) ? ":" : "");
}

static void note_process(struct text *t, pid_t pid)
{
	if (!t->pid)
		t->pid = pid;
	if (t->many || t->pid == pid)
		return;
	t->many = true;
	dp_heads_clear(&t->heads);
}

/* handle(id=3, name="x") = 0 <12.3us> errno=2 */
static void put_label(struct dp_buf *b, const struct dp_event_class *class, size_t i)
{
	const struct dp_field *f = &class->fields->field[i];
	const bool is_arg = i < class->nargs, is_rest = class->is_call && !is_arg;
	if (is_rest && (!strcmp(f->name, "retval") || !strcmp(f->name, "duration"))) {
		dp_put_str(b, !strcmp(f->name, "retval") ? " = " : " ");
		return;
	}
	dp_put_str(b, !is_arg ? " " : i ? ", " : "(");
	dp_put_str(b, f->label ? f->label : f->name);
	dp_put_str(b, "=");
}

static bool make_pieces(struct dp_pieces *p, const struct dp_event_class *class)
{
	if (!dp_pieces_begin(p, class->fields->n + 1))
		return false;
	for (size_t i = 0; i < class->fields->n; i++) {
		put_label(&p->text, class, i);
		dp_pieces_end(p);
	}
	return !p->text.failed;
}

static const struct dp_pieces *pieces_of(struct text *t, unsigned probe)
{
	struct dp_pieces *p = &t->pieces[probe];
	if (p->end || make_pieces(p, &t->base.classes[probe]))
		return p;
	dp_pieces_fini(p);
	dp_writer_fail(&t->base, dp_error_nomem());
	return NULL;
}

static void put_string(struct dp_buf *b, const struct dp_field *field, const struct dp_field_value *v)
{
	bool cut = v->n + 1 == field->size && v->n >= 3 && !memcmp(v->bytes + v->n - 3, "...", 3);
	dp_put_visible(b, v->bytes, cut ? v->n - 3 : v->n, '"');
	if (cut)
		dp_put_str(b, "...");
}

/* Frames come below the line, when that is complete. */
static bool grow_below(struct text *t)
{
	if (t->nbelow < t->capacity)
		return true;
	const size_t capacity = t->capacity ? 2 * t->capacity : 64;
	struct below *grown = reallocarray(t->below, capacity, sizeof(*grown));
	t->lines.b.failed |= !grown;
	if (!grown)
		return false;
	t->below = grown;
	t->capacity = capacity;
	return true;
}

static void put_below(struct text *t)
{
	for (size_t i = 0; i < t->nbelow; i++) {
		if (t->below[i].first)
			dp_lines_begin_backtrace(&t->lines);
		dp_lines_put_frame(&t->lines, t->below[i].frame);
	}
	t->nbelow = 0;
}

static void put_number(struct dp_buf *b, unsigned i)
{
	dp_put_str(b, "    #");
	dp_put_dec(b, i);
	dp_put_str(b, i < 10 ? "  " : " ");
}

static void put_frame(struct dp_buf *b, const struct dp_known_frame *frame, unsigned *number)
{
	const struct dp_source source = dp_source_of(frame->asked);
	for (size_t i = 0; i + 1 < source.n; i++) {
		put_number(b, (*number)++);
		dp_put_source(b, &source, i);
		dp_put_str(b, "\n");
	}
	put_number(b, (*number)++);
	if (frame->text[0])
		dp_put_visible(b, frame->text, strlen(frame->text), 0);
	else
		dp_put_hex(b, frame->pc);
	if (source.n)
		dp_put_source(b, &source, source.n - 1);
	dp_put_str(b, frame->by_pointer ? DP_FRAME_HOW "\n" : "\n");
}

static void keep_frame(size_t i, const struct dp_known_frame *frame, void *data)
{
	struct text *t = data;
	if (!grow_below(t))
		return;
	t->below[t->nbelow++] = (struct below){frame, !i};
}

static void put_char(struct dp_buf *b, uint64_t v)
{
	const char c = (char)v;
	dp_put_visible(b, &c, 1, '\'');
}

/* Appends values that are not plain numbers. */
static bool put_special(struct dp_buf *b, const struct dp_field *field, const struct dp_field_value *v)
{
	if (field->names)
		return dp_put_enumerator(b, field->names, v->u);
	if (field->display == DP_DISPLAY_BOOL && v->u < 2)
		dp_put_str(b, v->u ? "true" : "false");
	else if (field->display == DP_DISPLAY_CHAR)
		put_char(b, v->u);
	else if (field->display == DP_DISPLAY_DURATION)
		dp_put_duration(b, v->u);
	else
		return dp_put_call_display(b, field->display, v->u);
	return true;
}

/* Says why there is no value. */
static void put_none(const struct text *t, struct dp_buf *b, const struct dp_field *field)
{
	const bool absent = field->source == DP_SRC_NONE && field->absent;
	dp_put_str(b, t->color ? RED : "");
	dp_put_str(b, "<");
	dp_put_str(b, absent ? field->absent : "unreadable");
	dp_put_str(b, ">");
	dp_put_str(b, t->color ? RESET : "");
}

static void put_value(struct dp_buf *b, const struct dp_field *field, const struct dp_field_value *v)
{
	const bool plain = !field->names && field->display == DP_DISPLAY_NUMBER;
	if (!plain && put_special(b, field, v))
		return;
	if (field->type == DP_TYPE_STRING)
		put_string(b, field, v);
	else if (field->type == DP_TYPE_BYTES && (v->n != 16 || !dp_put_wide(b, field->display, v->bytes)))
		dp_put_hexdump(b, v->bytes, v->n);
	else if (field->type == DP_TYPE_BYTES)
		return;
	else if (field->type == DP_TYPE_FLOAT)
		dp_put_double(b, v->f, field->size);
	else if (field->type == DP_TYPE_POINTER && !v->u)
		dp_put_str(b, "NULL");
	else if (field->hex || field->type == DP_TYPE_POINTER)
		dp_put_hex(b, v->u);
	else if (field->type == DP_TYPE_INT)
		dp_put_signed(b, (int64_t)v->u);
	else
		dp_put_dec(b, v->u);
}

static void put_cut(struct text *t, const struct dp_field *field, const struct dp_field_value *v)
{
	static const struct dp_known_frame cut = {.text = DP_FRAMES_CUT};
	uint64_t last = 0;
	if (v->n)
		memcpy(&last, v->bytes + (v->n - 1) * sizeof(last), sizeof(last));
	if (last && dp_frames_cut(t->image, last, v->n, field->size))
		keep_frame(v->n, &cut, t);
}

/* The end of a call's arguments, before all others. */
static void close_args(struct text *t)
{
	if (!t->class->is_call || t->closed)
		return;
	t->closed = true;
	dp_put_str(&t->lines.b, !t->class->nargs ? "()" : t->unseen ? "(?)" : ")");
}

static bool is_took(const struct text *t, const struct dp_field *field, const struct dp_field_value *v)
{
	return t->class->is_call && !v->unreadable && !strcmp(field->name, "duration");
}

static void put_took(struct dp_buf *b, uint64_t ns)
{
	dp_put_str(b, "<");
	dp_put_duration(b, ns);
	dp_put_str(b, ">");
}

static void put_field(const struct dp_field *field, const struct dp_field_value *v, void *data)
{
	struct text *t = data;
	struct dp_buf *b = &t->lines.b;
	const size_t i = (size_t)(field - t->class->fields->field);
	if (i < t->class->nargs && t->unseen)
		return;
	if (i >= t->class->nargs)
		close_args(t);
	if (field->type == DP_TYPE_BACKTRACE) {
		dp_known_frames_each(t->lines.known, t->image, v, keep_frame, t);
		put_cut(t, field, v);
		return;
	}
	if (t->class->form && dp_message_has(t->class, field))
		return;
	if (t->in_line && dp_call_pairs_shows(dp_call_stream_pairs(t->calls), (unsigned)(t->class - t->base.classes), field))
		return;
	dp_pieces_put(t->piece, i, b);
	if (t->class->is_call && field->source == DP_SRC_NONE && !strcmp(field->name, "retval"))
		dp_put_str(b, "?"); /* a note has said why (session_scope.c) */
	else if (v->is_null)
		dp_put_str(b, DP_NULL_TEXT);
	else if (v->unreadable)
		put_none(t, b, field);
	else if (is_took(t, field, v))
		put_took(b, v->u);
	else
		put_value(b, field, v);
}

/* Escapes the whole message, so strings of the program are escaped too. */
static void put_message(struct text *t, const struct dp_event *e)
{
	struct dp_buf *b = &t->lines.b;
	t->message.len = 0;
	dp_put_message(&t->message, t->class, dp_writer_decoder(&t->base, e), e);
	dp_put_str(b, " ");
	dp_put_visible(b, dp_buf_str(&t->message), t->message.len, 0);
	b->failed |= t->message.failed;
}

/* Time and thread. False: out of memory. */
static bool begin_line(struct text *t, const struct dp_event *e)
{
	t->class = &t->base.classes[e->probe];
	dp_known_frames_look_up(t->lines.known, t->base.sources);
	t->piece = pieces_of(t, e->probe);
	if (!t->piece)
		return false;
	note_process(t, e->pid);
	put_time(t, e->ns);
	dp_heads_put(&t->heads, e, put_head, t, &t->lines.b);
	return true;
}

static void end_line(struct text *t)
{
	struct dp_buf *b = &t->lines.b;
	dp_put_str(b, "\n");
	put_below(t);
	dp_lines_end(&t->lines, &t->base);
}

static void put_call(const struct dp_call_shown *shown, void *data)
{
	struct text *t = data;
	const struct dp_event *rest = shown->rest;
	struct dp_image *current = t->image;
	t->in_line = true;
	if (begin_line(t, shown->at)) {
		dp_put_call_shown(&t->lines.b, shown, t->color ? NAME : "", t->color ? RESET : "");
		t->image = rest->image;
		t->class = &t->base.classes[rest->probe];
		t->piece = pieces_of(t, rest->probe);
		if (t->piece)
			dp_decoder_run(dp_writer_decoder(&t->base, rest), rest->payload, rest->len, put_field, t);
		end_line(t);
	}
	t->in_line = false;
	t->image = current;
}

static void text_event(struct dp_writer *w, const struct dp_event *e)
{
	struct text *t = (struct text *)w;
	t->image = e->image;
	if ((t->calls && dp_call_stream_event(t->calls, e)) || !begin_line(t, e))
		return;
	if (t->class->form)
		put_message(t, e);
	t->unseen = e->unseen;
	t->closed = false;
	dp_decoder_run(dp_writer_decoder(w, e), e->payload, e->len, put_field, t);
	close_args(t);
	dp_put_str(&t->lines.b, e->unseen ? " <entry not seen>" : "");
	end_line(t);
}

static void text_gap(struct dp_writer *w)
{
	struct text *t = (struct text *)w;
	if (t->calls)
		dp_call_pairs_gap(dp_call_stream_pairs(t->calls));
}

static void text_forget(struct dp_writer *w, const struct dp_image *image)
{
	struct text *t = (struct text *)w;
	if (t->calls)
		dp_call_stream_forget(t->calls, image);
}

static void text_until(struct dp_writer *w, uint64_t ns)
{
	struct text *t = (struct text *)w;
	if (t->calls)
		dp_call_stream_until(t->calls, ns);
}

static void text_known(struct dp_writer *w, unsigned i)
{
	struct text *t = (struct text *)w;
	dp_pieces_fini(&t->pieces[i]);
	dp_heads_clear(&t->heads);
	if (t->calls)
		dp_call_pairs_renew(dp_call_stream_pairs(t->calls), i);
}

static void text_note(struct dp_writer *w, const char *note)
{
	struct text *t = (struct text *)w;
	struct dp_buf *b = &t->lines.b;
	put_colored(t, b, DIM, "dynprobe:");
	dp_put_str(b, " ");
	dp_put_visible(b, note, strlen(note), 0);
	dp_put_str(b, "\n");
	dp_lines_end(&t->lines, w);
	dp_lines_pass_on(&t->lines, w);
}

static void text_end(struct dp_writer *w)
{
	struct text *t = (struct text *)w;
	if (t->calls)
		dp_call_stream_end(t->calls);
}

static void text_flush(struct dp_writer *w)
{
	dp_lines_flush(&((struct text *)w)->lines, w);
}

static void text_fini(struct dp_writer *w)
{
	struct text *t = (struct text *)w;
	dp_lines_finish(&t->lines, w);
	for (size_t i = 0; i < w->n; i++)
		dp_pieces_fini(&t->pieces[i]);
	free(t->pieces);
	dp_heads_fini(&t->heads);
	dp_stamp_fini(&t->stamp);
	dp_lines_fini(&t->lines);
	free(t->below);
	dp_buf_fini(&t->message);
	dp_call_stream_destroy(t->calls);
}

struct dp_error *dp_text_writer_create(FILE *to, bool color, const struct dp_event_class *classes, size_t n,
                                       struct dp_writer **ret)
{
	static const struct dp_writer_ops ops = {.event = text_event,
	                                         .known = text_known,
	                                         .note = text_note,
	                                         .gap = text_gap,
	                                         .until = text_until,
	                                         .forget = text_forget,
	                                         .end = text_end,
	                                         .flush = text_flush,
	                                         .fini = text_fini};
	struct text *t = calloc(1, sizeof(*t));
	struct dp_pieces *pieces = calloc(n + 1, sizeof(*pieces));
	if (t && pieces && dp_classes_have_calls(classes, n))
		t->calls = dp_call_stream_create(classes, n, put_call, t);
	if (!t || !pieces || (dp_classes_have_calls(classes, n) && !t->calls) ||
	    !dp_lines_init(&t->lines, to, true, put_frame)) {
		if (t)
			dp_call_stream_destroy(t->calls);
		free(t);
		free(pieces);
		return dp_error_nomem();
	}
	t->base = (struct dp_writer){.ops = &ops, .classes = classes, .n = n};
	t->pieces = pieces;
	t->color = color;
	*ret = &t->base;
	return NULL;
}
