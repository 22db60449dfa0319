/* SPDX-License-Identifier: MIT */
/* Live text: a line per event, with backtraces on indented lines below it. */
#include "output/events/frames.h"
#include "output/events/message.h"
#include "output/events/writer.h"
#include "output/format/put.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct text {
	struct dp_writer base;
	FILE *to;
	bool color;
	pid_t pid;      /* of the first event */
	bool many;      /* events of several processes have been seen */
	int64_t second; /* that `hms` shows */
	char hms[16];
	struct dp_buf line, below;
	struct dp_image *image; /* of the event being written */
	const struct dp_event_class *class;
};

enum { NS_PER_SECOND = 1000000000 };

#define DIM   "\033[2m"
#define NAME  "\033[1;36m"
#define RED   "\033[31m"
#define RESET "\033[0m"

static void put_colored(struct text *t, struct dp_buf *b, const char *color, const char *s)
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
	char text[32];
	int64_t wall = (int64_t)monotonic + dp_clock_offset(), second = wall / NS_PER_SECOND;
	struct tm tm;
	time_t at = second;
	if ((second != t->second || !t->hms[0]) && localtime_r(&at, &tm)) {
		strftime(t->hms, sizeof(t->hms), "%H:%M:%S", &tm);
		t->second = second;
	}
	snprintf(text, sizeof(text), "%s.%09d", t->hms, abs((int)(wall % NS_PER_SECOND)));
	put_colored(t, &t->line, DIM, text);
}

static void put_thread(struct text *t, const struct dp_event *e)
{
	if (!t->pid)
		t->pid = e->pid;
	t->many |= t->pid != e->pid;
	dp_put_str(&t->line, " ");
	dp_put_visible(&t->line, e->comm ? e->comm : "", e->comm ? strlen(e->comm) : 0, 0);
	dp_put_str(&t->line, "[");
	if (t->many) {
		dp_put_signed(&t->line, e->pid);
		dp_put_str(&t->line, "/");
	}
	dp_put_signed(&t->line, e->tid);
	dp_put_str(&t->line, "] ");
}

static void put_string(struct dp_buf *b, const struct dp_field *field, const struct dp_field_value *v)
{
	bool cut = v->n + 1 == field->size && v->n >= 3 && !memcmp(v->bytes + v->n - 3, "...", 3);
	dp_put_visible(b, v->bytes, cut ? v->n - 3 : v->n, '"');
	if (cut)
		dp_put_str(b, "...");
}

static void put_frame(size_t i, const struct dp_frame_shown *frame, void *data)
{
	struct text *t = data;
	char number[16];
	snprintf(number, sizeof(number), "    #%-2zu ", i);
	dp_put_str(&t->below, number);
	if (frame->text[0])
		dp_put_visible(&t->below, frame->text, strlen(frame->text), 0);
	else
		dp_put_hex(&t->below, frame->pc);
	dp_put_str(&t->below, frame->by_pointer ? DP_FRAME_HOW "\n" : "\n");
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
	else
		return dp_put_call_display(b, field->display, v->u);
	return true;
}

/* Says why there is no value. */
static void put_none(struct text *t, const struct dp_field *field)
{
	const bool absent = field->source == DP_SRC_NONE && field->absent;
	if (t->color)
		dp_put_str(&t->line, RED);
	dp_put_str(&t->line, "<");
	dp_put_str(&t->line, absent ? field->absent : "unreadable");
	dp_put_str(&t->line, ">");
	if (t->color)
		dp_put_str(&t->line, RESET);
}

static void put_value(struct dp_buf *b, const struct dp_field *field, const struct dp_field_value *v)
{
	if (put_special(b, field, v))
		return;
	if (field->type == DP_TYPE_STRING)
		put_string(b, field, v);
	else if (field->type == DP_TYPE_BYTES && (v->n != 16 || !dp_put_wide(b, field->display, v->bytes)))
		dp_put_hexdump(b, v->bytes, v->n);
	else if (field->type == DP_TYPE_BYTES)
		return;
	else if (field->type == DP_TYPE_FLOAT)
		dp_put_double(b, v->f, field->size);
	else if (field->hex || field->type == DP_TYPE_POINTER)
		dp_put_hex(b, v->u);
	else if (field->type == DP_TYPE_INT)
		dp_put_signed(b, (int64_t)v->u);
	else
		dp_put_dec(b, v->u);
}

static void put_cut(struct text *t, const struct dp_field *field, const struct dp_field_value *v)
{
	uint64_t last = 0;
	if (v->n)
		memcpy(&last, v->bytes + (v->n - 1) * sizeof(last), sizeof(last));
	if (last && dp_frames_cut(t->image, last, v->n, field->size))
		put_frame(v->n, &(struct dp_frame_shown){.text = DP_FRAMES_CUT}, t);
}

static void put_field(const struct dp_field *field, const struct dp_field_value *v, void *data)
{
	struct text *t = data;
	if (field->type == DP_TYPE_BACKTRACE) {
		dp_frames_each(t->image, v, true, put_frame, t);
		put_cut(t, field, v);
		return;
	}
	if (dp_message_has(t->class, field))
		return;
	dp_put_str(&t->line, " ");
	dp_put_str(&t->line, field->label ? field->label : field->name);
	dp_put_str(&t->line, "=");
	if (v->unreadable)
		put_none(t, field);
	else
		put_value(&t->line, field, v);
}

static void print(struct text *t, struct dp_buf *b)
{
	if (b->failed)
		dp_writer_fail(&t->base, dp_error_nomem());
	else if (fwrite(dp_buf_str(b), 1, b->len, t->to) != b->len)
		dp_writer_fail(&t->base, dp_error_sys(DP_TAG_OUTPUT, "cannot write the events"));
	b->len = 0;
}

/* Escapes the whole message, so strings of the program are escaped too. */
static void put_message(struct text *t, const struct dp_event *e)
{
	struct dp_buf message;
	dp_buf_init(&message);
	dp_put_message(&message, t->class, e);
	dp_put_str(&t->line, " ");
	dp_put_visible(&t->line, dp_buf_str(&message), message.len, 0);
	t->line.failed |= message.failed;
	dp_buf_fini(&message);
}

static void text_event(struct dp_writer *w, const struct dp_event *e)
{
	struct text *t = (struct text *)w;
	const struct dp_event_class *class = &w->classes[e->probe];
	put_time(t, e->ns);
	put_thread(t, e);
	put_colored(t, &t->line, NAME, class->title ? class->title : class->name);
	dp_put_str(&t->line, class->fields->n || class->form ? ":" : "");
	t->image = e->image;
	t->class = class;
	if (class->form)
		put_message(t, e);
	dp_fields_decode(class->fields, e->payload, e->len, put_field, t);
	dp_put_str(&t->line, "\n");
	print(t, &t->line);
	print(t, &t->below);
}

static void text_note(struct dp_writer *w, const char *note)
{
	struct text *t = (struct text *)w;
	put_colored(t, &t->line, DIM, "dynprobe:");
	dp_put_str(&t->line, " ");
	dp_put_visible(&t->line, note, strlen(note), 0);
	dp_put_str(&t->line, "\n");
	print(t, &t->line);
}

static void text_flush(struct dp_writer *w)
{
	struct text *t = (struct text *)w;
	if (fflush(t->to))
		dp_writer_fail(w, dp_error_sys(DP_TAG_OUTPUT, "cannot write the events"));
}

static void text_fini(struct dp_writer *w)
{
	struct text *t = (struct text *)w;
	dp_buf_fini(&t->line);
	dp_buf_fini(&t->below);
}

struct dp_error *dp_text_writer_create(FILE *to, bool color, const struct dp_event_class *classes, size_t n,
                                       struct dp_writer **ret)
{
	static const struct dp_writer_ops ops = {.event = text_event, .note = text_note, .flush = text_flush, .fini = text_fini};
	struct text *t = calloc(1, sizeof(*t));
	if (!t)
		return dp_error_nomem();
	t->base = (struct dp_writer){.ops = &ops, .classes = classes, .n = n};
	t->to = to;
	t->color = color;
	*ret = &t->base;
	return NULL;
}
