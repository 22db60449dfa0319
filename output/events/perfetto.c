/* SPDX-License-Identifier: MIT */
/*
 * Chrome's trace event format (JSON object form), which ui.perfetto.dev opens: a slice ("X") for each call that has a duration,
 * an instant ("i") for every other event, and metadata ("M") with the names of processes and threads. Times are microseconds;
 * three decimals keep the nanoseconds.
 */
#include "agent/abi.h"
#include "output/calls/pairs.h"
#include "output/events/frames.h"
#include "output/events/lines.h"
#include "output/events/message.h"
#include "output/events/writer.h"
#include "output/format/put.h"

#include "base/text_hash.h"

#include <stdlib.h>
#include <string.h>

#define EXACT (INT64_C(1) << 53) /* greater numbers are no longer exact in JavaScript */

struct perfetto_thread {
	struct {
		pid_t pid, tid;
	} key;
	UT_hash_handle hh;
};

struct perfetto {
	struct dp_writer base;
	struct dp_lines lines;
	struct perfetto_thread *threads; /* those that are named; a process is the one with tid 0 */
	bool any;
	struct dp_call_pairs *calls; /* NULL: no class is about system calls */
	struct dp_buf args, message, name;
	/* Of the event being written. */
	struct dp_image *image;
	const struct dp_event_class *class;
	const char *shown; /* its name */
	uint64_t duration;
	bool timed;
};

static void put_key(struct dp_buf *b, const char *before, const char *key)
{
	dp_put_str(b, before);
	dp_put_json_str(b, key);
	dp_put_str(b, ":");
}

static void put_time(struct dp_buf *b, const char *key, uint64_t ns)
{
	dp_buf_printf(b, ",\"%s\":%llu.%03u", key, (unsigned long long)(ns / 1000), (unsigned)(ns % 1000));
}

static void begin_object(struct perfetto *p)
{
	dp_put_str(&p->lines.b, p->any ? ",\n" : "");
	p->any = true;
}

/* ---- names of threads and processes ---------------------------------------------------------------------------------------- */

static void put_name(struct perfetto *p, const char *what, const struct dp_event *e, pid_t tid, const char *name)
{
	struct dp_buf *b = &p->lines.b;
	begin_object(p);
	dp_buf_printf(b, "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":", what, e->pid, tid);
	dp_put_json_str(b, name ? name : "");
	dp_put_str(b, "}}");
}

/* True once for each. */
static bool is_new(struct perfetto *p, pid_t pid, pid_t tid)
{
	struct perfetto_thread *found, key = {.key = {pid, tid}};
	HASH_FIND(hh, p->threads, &key.key, sizeof(key.key), found);
	if (found)
		return false;
	found = calloc(1, sizeof(*found));
	if (!found) {
		dp_writer_fail(&p->base, dp_error_nomem());
		return false;
	}
	found->key.pid = pid;
	found->key.tid = tid;
	HASH_ADD(hh, p->threads, key, sizeof(found->key), found);
	return true;
}

static void name_thread(struct perfetto *p, const struct dp_event *e)
{
	if (is_new(p, e->pid, 0))
		put_name(p, "process_name", e, e->pid, e->process ? e->process : e->comm);
	if (is_new(p, e->pid, e->tid))
		put_name(p, "thread_name", e, e->tid, e->comm);
}

/* ---- values ---------------------------------------------------------------------------------------------------------------- */

static void put_frame(size_t i, const struct dp_frame_shown *frame, void *data)
{
	struct dp_buf *b = data;
	char pc[32];
	snprintf(pc, sizeof(pc), "0x%llx", (unsigned long long)frame->pc);
	dp_put_str(b, i ? "," : "");
	dp_put_json_str(b, frame->text[0] ? frame->text : pc);
}

/* What is a text elsewhere, or no number that JavaScript has. False: it is a number. */
static bool put_word(struct dp_buf *b, const struct dp_field *f, const struct dp_field_value *v)
{
	struct dp_buf text = {0};
	const int64_t i = (int64_t)v->u;
	const bool wide = f->type == DP_TYPE_UINT ? v->u > (uint64_t)EXACT : i > EXACT || i < -EXACT;
	if (f->names || f->display >= DP_DISPLAY_RESULT)
		f->names ? dp_put_enumerator(&text, f->names, v->u) : dp_put_call_display(&text, f->display, v->u);
	else if (f->display == DP_DISPLAY_BOOL && v->u < 2)
		dp_put_str(&text, v->u ? "true" : "false");
	else if (f->hex || f->type == DP_TYPE_POINTER)
		dp_put_hex(&text, v->u);
	if (!text.len && wide)
		f->type == DP_TYPE_UINT ? dp_put_dec(&text, v->u) : dp_put_signed(&text, i);
	const bool found = text.len;
	if (found)
		dp_put_json(b, text.data, text.len);
	b->failed |= text.failed;
	dp_buf_fini(&text);
	return found;
}

static void put_bytes(struct dp_buf *b, const struct dp_field *f, const struct dp_field_value *v)
{
	struct dp_buf text = {0};
	if (v->n != 16 || !dp_put_wide(&text, f->display, v->bytes))
		dp_put_hexdump(&text, v->bytes, v->n);
	dp_put_json(b, text.data, text.len);
	b->failed |= text.failed;
	dp_buf_fini(&text);
}

static void put_value(struct perfetto *p, const struct dp_field *f, const struct dp_field_value *v)
{
	struct dp_buf *b = &p->args;
	if (f->type == DP_TYPE_STRING) {
		dp_put_json(b, v->bytes, v->n);
	} else if (f->type == DP_TYPE_BYTES) {
		put_bytes(b, f, v);
	} else if (f->type == DP_TYPE_BACKTRACE) {
		dp_put_str(b, "[");
		dp_frames_each(p->image, v, true, put_frame, b);
		dp_put_str(b, "]");
	} else if (f->type == DP_TYPE_FLOAT) {
		dp_put_str(b, __builtin_isfinite(v->f) ? "" : "\"");
		dp_put_double(b, v->f, f->size);
		dp_put_str(b, __builtin_isfinite(v->f) ? "" : "\"");
	} else if (!put_word(b, f, v)) {
		dp_put_signed(b, (int64_t)v->u);
	}
}

static void put_field(const struct dp_field *f, const struct dp_field_value *v, void *data)
{
	struct perfetto *p = data;
	if (!v->unreadable && f->type <= DP_TYPE_UINT && !strcmp(f->name, "duration")) {
		p->timed = true;
		p->duration = v->u;
		return;
	}
	put_key(&p->args, p->args.len ? "," : "", f->label ? f->label : f->name);
	if (v->is_null)
		dp_put_json_str(&p->args, DP_NULL_TEXT);
	else if (v->unreadable)
		dp_put_json_str(&p->args, f->source == DP_SRC_NONE && f->absent ? f->absent : "<unreadable>");
	else
		put_value(p, f, v);
}

/* ---- events ---------------------------------------------------------------------------------------------------------------- */

static void put_message(struct perfetto *p, const struct dp_event *e)
{
	p->message.len = 0;
	dp_put_message(&p->message, p->class, dp_writer_decoder(&p->base, e), e);
	put_key(&p->args, p->args.len ? "," : "", "message");
	dp_put_json(&p->args, dp_buf_str(&p->message), p->message.len);
	p->args.failed |= p->message.failed;
}

static void put_event(struct perfetto *p, const struct dp_event *e)
{
	struct dp_buf *b = &p->lines.b;
	const bool early = p->duration > e->ns; /* nonsense, which a program may write into its own memory */
	const uint64_t begin = p->timed && !early ? e->ns - p->duration : e->ns;
	begin_object(p);
	dp_buf_printf(b, "{\"ph\":\"%s\",\"cat\":\"dynprobe\",\"name\":", p->timed ? "X" : "i");
	dp_put_json_str(b, p->shown);
	dp_buf_printf(b, ",\"pid\":%d,\"tid\":%d", e->pid, e->tid);
	put_time(b, "ts", begin);
	if (p->timed)
		put_time(b, "dur", e->ns - begin);
	else
		dp_put_str(b, ",\"s\":\"t\"");
	dp_put_str(b, ",\"args\":{");
	dp_buf_put(b, p->args.data, p->args.len);
	dp_put_str(b, "}}");
	b->failed |= p->args.failed;
}

/* ---- system calls: a slice for a call, when it ends ------------------------------------------------------------------------ */

static void put_call(struct perfetto *p, const struct dp_event *e, const struct dp_call_line *line)
{
	struct dp_buf text = {0};
	dp_put_call_args(&text, line, 0, UINT8_MAX);
	put_key(&p->args, "", "arguments");
	dp_put_json(&p->args, text.data ? text.data : (const uint8_t *)"", text.len);
	text.len = 0;
	if (line->exit)
		dp_put_call_result(&text, line);
	put_key(&p->args, ",", "result");
	dp_put_json(&p->args, text.len > 3 ? text.data + 3 : (const uint8_t *)"", text.len > 3 ? text.len - 3 : 0); /* " = " */
	p->args.failed |= text.failed;
	dp_buf_fini(&text);
	p->name.len = 0;
	dp_put_call_name(&p->name, line);
	p->shown = dp_buf_str(&p->name);
	p->timed = line->has_duration;
	p->duration = line->duration_ns;
	name_thread(p, e);
	put_event(p, e);
	dp_lines_end(&p->lines, &p->base);
}

static void take_call(struct perfetto *p, const struct dp_event *e)
{
	struct dp_call_seen seen, entry;
	dp_call_pairs_see(p->calls, e, &seen);
	if (!seen.exit && !dp_call_never_returns(seen.nr)) {
		if (!dp_call_pairs_hold(p->calls, e, seen.nr))
			dp_writer_fail(&p->base, dp_error_nomem());
		return;
	}
	const struct dp_held_call *h = seen.exit ? dp_call_pairs_match(p->calls, e, &seen, &entry) : NULL;
	const struct dp_call_line line =
	        seen.exit ? dp_call_line_of(e, &seen, h, &entry) : (struct dp_call_line){.entry = &seen, .nr = seen.nr};
	put_call(p, e, &line);
	dp_call_pairs_end(p->calls, h);
}

static void perfetto_gap(struct dp_writer *w)
{
	struct perfetto *p = (struct perfetto *)w;
	if (p->calls)
		dp_call_pairs_gap(p->calls);
}

static void perfetto_event(struct dp_writer *w, const struct dp_event *e)
{
	struct perfetto *p = (struct perfetto *)w;
	p->class = &w->classes[e->probe];
	p->image = e->image;
	p->timed = false;
	p->duration = 0;
	p->args.len = 0;
	p->shown = p->class->title ? p->class->title : p->class->name;
	if (p->calls && dp_call_pairs_takes(p->calls, e->probe)) {
		take_call(p, e);
		return;
	}
	dp_decoder_run(dp_writer_decoder(w, e), e->payload, e->len, put_field, p);
	if (p->class->form)
		put_message(p, e);
	name_thread(p, e);
	put_event(p, e);
	dp_lines_end(&p->lines, w);
}

static void perfetto_flush(struct dp_writer *w)
{
	dp_lines_flush(&((struct perfetto *)w)->lines, w);
}

static void perfetto_fini(struct dp_writer *w)
{
	struct perfetto *p = (struct perfetto *)w;
	struct perfetto_thread *t, *next;
	dp_put_str(&p->lines.b, "\n]}\n");
	dp_lines_end(&p->lines, w);
	dp_lines_flush(&p->lines, w);
	HASH_ITER(hh, p->threads, t, next)
	{
		HASH_DEL(p->threads, t);
		free(t);
	}
	dp_lines_fini(&p->lines);
	dp_buf_fini(&p->args);
	dp_buf_fini(&p->message);
	dp_buf_fini(&p->name);
	dp_call_pairs_destroy(p->calls);
}

struct dp_error *dp_perfetto_writer_create(FILE *to, const struct dp_event_class *classes, size_t n, struct dp_writer **ret)
{
	static const struct dp_writer_ops ops = {
	        .event = perfetto_event, .gap = perfetto_gap, .flush = perfetto_flush, .fini = perfetto_fini};
	struct perfetto *p = calloc(1, sizeof(*p));
	if (p && dp_classes_have_calls(classes, n))
		p->calls = dp_call_pairs_create(classes, n);
	if (!p || (dp_classes_have_calls(classes, n) && !p->calls) || !dp_lines_init(&p->lines, to, true, NULL)) {
		free(p);
		return dp_error_nomem();
	}
	p->base = (struct dp_writer){.ops = &ops, .classes = classes, .n = n};
	dp_put_str(
	        &p->lines.b,
	        "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"generator\":\"dynprobe\",\"clock\":\"monotonic\",\"offset_ns\":\"");
	dp_put_signed(&p->lines.b, dp_clock_offset());
	dp_put_str(&p->lines.b, "\"},\"traceEvents\":[\n");
	dp_lines_end(&p->lines, &p->base);
	*ret = &p->base;
	return NULL;
}
