/* SPDX-License-Identifier: MIT */
/*
 * Events as the text view shows them: its writer makes the lines, so that the page says what `dynprobe view` says. Stacks that
 * come again are recognized by their addresses; names are formed once for each.
 */
#include "output/timeline/timeline.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/text_hash.h"
#include "output/calls/pairs.h"
#include "output/events/frames.h"
#include "output/format/put.h"

#include <stdlib.h>
#include <string.h>

struct known {        /* a stack */
	uint8_t *key; /* the image and the addresses */
	uint32_t stack;
	UT_hash_handle hh;
};

struct dp_timeline_trace {
	struct dp_timeline *t;
	const struct dp_event_class *class;
	size_t n;
	FILE *lines; /* what the writer writes to: `text` */
	struct dp_writer *writer;
	struct dp_event_class *plain; /* as the writer knows them: it shows each event by itself */
	struct dp_call_pairs *calls;  /* NULL: no class is about system calls */
	struct dp_buf name, line;     /* of a call */
	uint64_t last;                /* time of the last event */
	char *text;
	size_t text_size;
	struct dp_arena arena;
	struct known *known;
	struct dp_buf key;
	/* Of the event at hand. */
	const struct dp_event *event;
	uint64_t duration;
	uint32_t stack;
	char *frame[UINT8_MAX + 2]; /* innermost first */
	size_t nframes;
};

static bool make_classes(struct dp_timeline_trace *of)
{
	of->plain = calloc(of->n + 1, sizeof(*of->plain));
	if (!of->plain)
		return false;
	for (size_t i = 0; i < of->n; i++) {
		of->plain[i] = of->class[i];
		of->plain[i].call = NULL;
	}
	if (!dp_classes_have_calls(of->class, of->n))
		return true;
	of->calls = dp_call_pairs_create(of->class, of->n);
	return of->calls;
}

struct dp_error *dp_timeline_trace_create(struct dp_timeline *t, const struct dp_event_class *class, size_t n,
                                          struct dp_timeline_trace **ret)
{
	struct dp_timeline_trace *of = calloc(1, sizeof(*of));
	if (!of)
		return dp_error_nomem();
	*of = (struct dp_timeline_trace){.t = t, .class = class, .n = n};
	of->lines = open_memstream(&of->text, &of->text_size);
	struct dp_error *err = of->lines && make_classes(of) ? dp_text_writer_create(of->lines, false, of->plain, n, &of->writer)
	                                                     : dp_error_nomem();
	if (err)
		dp_timeline_trace_destroy(of);
	else
		*ret = of;
	return err;
}

struct dp_timeline_trace *dp_timeline_trace_destroy(struct dp_timeline_trace *of)
{
	if (!of)
		return NULL;
	if (of->writer)
		dp_error_destroy(dp_writer_close(of->writer));
	if (of->lines)
		fclose(of->lines);
	free(of->text);
	dp_call_pairs_destroy(of->calls);
	free(of->plain);
	dp_buf_fini(&of->name);
	dp_buf_fini(&of->line);
	HASH_CLEAR(hh, of->known);
	dp_arena_fini(&of->arena);
	dp_buf_fini(&of->key);
	free(of);
	return NULL;
}

/* ---- stacks ---------------------------------------------------------------------------------------------------------------- */

static void keep_frame(size_t i, const struct dp_frame_shown *frame, void *data)
{
	struct dp_timeline_trace *of = data;
	(void)i;
	if (of->nframes == UINT8_MAX + 1)
		return;
	of->frame[of->nframes] = frame->text[0] ? strdup(frame->text) : NULL;
	if (!frame->text[0] && asprintf(&of->frame[of->nframes], "0x%llx", (unsigned long long)frame->pc) < 0)
		of->frame[of->nframes] = NULL;
	of->nframes += of->frame[of->nframes] != NULL;
}

static bool is_cut(const struct dp_timeline_trace *of, const struct dp_field *field, const struct dp_field_value *v)
{
	uint64_t last;
	memcpy(&last, v->bytes + (v->n - 1) * sizeof(last), sizeof(last));
	return last && dp_frames_cut(of->event->image, last, v->n, field->size);
}

static uint32_t make_stack(struct dp_timeline_trace *of, const struct dp_field *field, const struct dp_field_value *v)
{
	const char *outermost[UINT8_MAX + 2];
	of->nframes = 0;
	dp_frames_each(of->event->image, v, true, keep_frame, of);
	if (is_cut(of, field, v))
		keep_frame(0, &(struct dp_frame_shown){.text = DP_FRAMES_CUT}, of);
	for (size_t i = 0; i < of->nframes; i++)
		outermost[i] = of->frame[of->nframes - 1 - i];
	const uint32_t stack = dp_timeline_stack(of->t, outermost, of->nframes);
	for (size_t i = 0; i < of->nframes; i++)
		free(of->frame[i]);
	return stack;
}

static uint32_t stack_of(struct dp_timeline_trace *of, const struct dp_field *field, const struct dp_field_value *v)
{
	struct known *found;
	of->key.len = 0;
	dp_buf_put(&of->key, &of->event->image, sizeof(of->event->image));
	dp_buf_put(&of->key, v->bytes, v->n * sizeof(uint64_t));
	if (of->key.failed)
		return 0;
	HASH_FIND(hh, of->known, of->key.data, of->key.len, found);
	if (found)
		return found->stack;
	const uint32_t stack = make_stack(of, field, v);
	found = dp_arena_alloc(&of->arena, sizeof(*found));
	uint8_t *key = found ? dp_arena_alloc(&of->arena, of->key.len) : NULL;
	if (!key)
		return stack;
	memcpy(key, of->key.data, of->key.len);
	*found = (struct known){.key = key, .stack = stack};
	HASH_ADD_KEYPTR(hh, of->known, key, of->key.len, found);
	return stack;
}

/* ---- events ---------------------------------------------------------------------------------------------------------------- */

static void take_field(const struct dp_field *field, const struct dp_field_value *v, void *data)
{
	struct dp_timeline_trace *of = data;
	if (v->unreadable)
		return;
	if (field->type == DP_TYPE_BACKTRACE && v->n && !of->stack)
		of->stack = stack_of(of, field, v);
	else if (field->type <= DP_TYPE_UINT && !strcmp(field->name, "duration"))
		of->duration = v->u;
}

/* Its first line behind the time; the frames below it are the stack. */
static struct dp_error *write_text(struct dp_timeline_trace *of, const struct dp_event *e, const char **text, size_t *n)
{
	rewind(of->lines);
	dp_writer_recorded(of->writer, e);
	DP_TRY(dp_writer_flush(of->writer));
	const char *end = memchr(of->text, '\n', of->text_size), *blank = memchr(of->text, ' ', of->text_size);
	*text = blank && end && blank < end ? blank + 1 : "";
	*n = **text ? (size_t)(end - *text) : 0;
	return NULL;
}

/* ---- system calls: one event for a call, when it ends ---------------------------------------------------------------------- */

/* "server[12] openat(AT_FDCWD, "x", O_RDONLY) = 3" */
static struct dp_error *add_call(struct dp_timeline_trace *of, const struct dp_call_line *line, struct dp_timeline_event *as)
{
	struct dp_buf *b = &of->line;
	of->name.len = b->len = 0;
	dp_put_call_name(&of->name, line);
	dp_put_visible(b, as->comm ? as->comm : "", as->comm ? strlen(as->comm) : 0, 0);
	dp_buf_printf(b, "[%d] %s(", as->tid, dp_buf_str(&of->name));
	dp_put_call_args(b, line, 0, line->exit ? UINT8_MAX : dp_call_first_late(line->nr));
	if (line->exit) {
		dp_put_str(b, ")");
		dp_put_call_result(b, line);
	} else {
		dp_put_str(b, " <unfinished ...>");
	}
	if (line->has_duration)
		as->duration = line->duration_ns;
	as->probe = dp_buf_str(&of->name);
	as->text = dp_buf_str(b);
	as->n = b->len;
	return of->name.failed || b->failed ? dp_error_nomem() : dp_timeline_add(of->t, as);
}

static struct dp_error *take_call(struct dp_timeline_trace *of, const struct dp_event *e, struct dp_timeline_event *as)
{
	struct dp_call_seen seen, entry;
	dp_call_pairs_see(of->calls, e, &seen);
	if (!seen.exit && dp_call_never_returns(seen.nr))
		return add_call(of, &(struct dp_call_line){.entry = &seen, .nr = seen.nr}, as);
	if (!seen.exit)
		return dp_call_pairs_hold(of->calls, e, seen.nr) ? NULL : dp_error_nomem();
	const struct dp_held_call *h = dp_call_pairs_match(of->calls, e, &seen, &entry);
	const struct dp_call_line line = dp_call_line_of(e, &seen, h, &entry);
	struct dp_error *err = add_call(of, &line, as);
	dp_call_pairs_end(of->calls, h);
	return err;
}

struct ending {
	struct dp_timeline_trace *of;
	struct dp_error *err;
};

/* A call that has not ended lasts as long as the trace. */
static void end_call(struct dp_held_call *h, void *data)
{
	struct ending *ending = data;
	struct dp_timeline_trace *of = ending->of;
	struct dp_call_seen seen;
	if (ending->err)
		return;
	dp_call_pairs_see(of->calls, &h->e, &seen);
	struct dp_timeline_event as = {.ns = of->last, .pid = h->e.pid, .tid = h->e.tid, .comm = h->e.comm};
	const struct dp_call_line line = {
	        .entry = &seen, .nr = seen.nr, .has_duration = true, .duration_ns = of->last > h->e.ns ? of->last - h->e.ns : 0};
	ending->err = add_call(of, &line, &as);
}

struct dp_error *dp_timeline_trace_end(struct dp_timeline_trace *of)
{
	struct ending ending = {.of = of};
	if (of->calls)
		dp_call_pairs_each(of->calls, end_call, &ending);
	return ending.err;
}

void dp_timeline_trace_gap(struct dp_timeline_trace *of)
{
	if (of->calls)
		dp_call_pairs_gap(of->calls);
}

struct dp_error *dp_timeline_trace_add(struct dp_timeline_trace *of, const struct dp_event *e)
{
	const struct dp_event_class *class = &of->class[e->probe];
	of->event = e;
	of->duration = DP_TIMELINE_NONE;
	of->stack = 0;
	if (!dp_fields_decode(class->fields, e->payload, e->len, take_field, of))
		return NULL;
	struct dp_timeline_event as = {.ns = e->ns,
	                               .pid = e->pid,
	                               .tid = e->tid,
	                               .comm = e->comm,
	                               .probe = class->title ? class->title : class->name,
	                               .duration = of->duration,
	                               .stack = of->stack};
	of->last = e->ns;
	if (of->calls && dp_call_pairs_takes(of->calls, e->probe))
		return take_call(of, e, &as);
	DP_TRY(write_text(of, e, &as.text, &as.n));
	return dp_timeline_add(of->t, &as);
}
