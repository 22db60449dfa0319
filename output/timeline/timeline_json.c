/* SPDX-License-Identifier: MIT */
/* A run that wrote NDJSON. Its lines come in rounds, so they are sorted by time first. A file is untrusted input. */
#include "output/timeline/timeline.h"

#include "agent/abi.h"
#include "output/format/put.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES_MOST 256u

struct entry {
	struct dp_timeline_event as;
	size_t text; /* its begin in `texts` */
};
struct dp_timeline_run {
	struct dp_timeline *t;
	struct entry *entry;
	size_t n, capacity;
	struct dp_buf texts;
	json_t *names; /* the names of threads and probes: each as a key */
	int64_t clock_offset;
	bool begun, failed;
};

/* Lives as long as the run. */
static const char *keep(struct dp_timeline_run *r, const json_t *text)
{
	const char *name = json_string_value(text);
	if (!name)
		return "";
	if (!json_object_get(r->names, name) && json_object_set_new(r->names, name, json_string(name)))
		r->failed = true;
	name = json_string_value(json_object_get(r->names, name));
	return name ? name : "";
}

/* ---- text ------------------------------------------------------------------------------------------------------------------ */

/* Why a field is null: the event lists those that could not be read, and those without a value here. */
static void put_null(struct dp_buf *b, const json_t *event, const char *name)
{
	const char *absent = json_string_value(json_object_get(json_object_get(event, "absent"), name));
	const json_t *unreadable = json_object_get(event, "unreadable"), *other;
	bool listed = false;
	size_t i;
	json_array_foreach(unreadable, i, other) listed |= json_is_string(other) && !strcmp(json_string_value(other), name);
	if (!listed && !absent) {
		dp_put_str(b, DP_NULL_TEXT);
		return;
	}
	dp_put_str(b, "<");
	dp_put_visible(b, absent ? absent : "unreadable", strlen(absent ? absent : "unreadable"), 0);
	dp_put_str(b, ">");
}

static void put_value(struct dp_buf *b, const json_t *v)
{
	char *dumped = NULL;
	const char *text = json_string_value(v);
	if (text) {
		const bool number = text[0] == '0' && text[1] == 'x';
		dp_put_visible(b, text, json_string_length(v), number ? 0 : '"');
	} else if ((dumped = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT))) {
		dp_put_visible(b, dumped, strlen(dumped), 0);
	}
	free(dumped);
}

static bool is_backtrace(const json_t *v)
{
	return json_is_array(v) && json_is_string(json_object_get(json_array_get(v, 0), "addr"));
}

/* "worker[12] probe: a=1 b="text"" */
static void put_text(struct dp_timeline_run *r, const struct dp_timeline_event *e, const json_t *event)
{
	struct dp_buf *b = &r->texts;
	const char *message = json_string_value(json_object_get(event, "message")), *key;
	json_t *fields = json_object_get(event, "fields"), *v;
	dp_put_visible(b, e->comm, strlen(e->comm), 0);
	dp_buf_printf(b, "[%d] ", e->tid);
	dp_put_visible(b, e->probe, strlen(e->probe), 0);
	dp_put_str(b, ":");
	if (message) {
		dp_put_str(b, " ");
		dp_put_visible(b, message, strlen(message), 0);
	}
	json_object_foreach(fields, key, v)
	{
		if (is_backtrace(v))
			continue;
		dp_put_str(b, " ");
		dp_put_visible(b, key, strlen(key), 0);
		dp_put_str(b, "=");
		if (json_is_null(v))
			put_null(b, event, key);
		else
			put_value(b, v);
	}
}

/* "worker[12] openat(AT_FDCWD, "x", O_RDONLY) = 3"; an entry has no result */
static void put_call(struct dp_timeline_run *r, const struct dp_timeline_event *e, const json_t *event)
{
	struct dp_buf *b = &r->texts;
	const char *args = json_string_value(json_object_get(event, "args_text")),
	           *error = json_string_value(json_object_get(event, "error"));
	const json_t *result = json_object_get(event, "result");
	dp_put_visible(b, e->comm, strlen(e->comm), 0);
	dp_buf_printf(b, "[%d] ", e->tid);
	dp_put_visible(b, e->probe, strlen(e->probe), 0);
	dp_put_str(b, "(");
	dp_put_visible(b, args ? args : "", args ? strlen(args) : 0, 0);
	dp_put_str(b, result ? ") = " : ")");
	if (result)
		put_value(b, result);
	dp_put_str(b, error ? " " : "");
	dp_put_visible(b, error ? error : "", error ? strlen(error) : 0, 0);
}

/* ---- events ---------------------------------------------------------------------------------------------------------------- */

static uint32_t stack_of(struct dp_timeline_run *r, const json_t *frames)
{
	const char *name[FRAMES_MOST];
	const size_t n = json_array_size(frames) < FRAMES_MOST ? json_array_size(frames) : FRAMES_MOST;
	for (size_t i = 0; i < n; i++) {
		const json_t *frame = json_array_get(frames, n - 1 - i);
		const char *symbol = json_string_value(json_object_get(frame, "symbol")),
		           *addr = json_string_value(json_object_get(frame, "addr"));
		name[i] = symbol ? symbol : addr ? addr : "?";
	}
	return dp_timeline_stack(r->t, name, n);
}

static void take_fields(struct dp_timeline_run *r, json_t *fields, struct dp_timeline_event *e)
{
	const char *key;
	json_t *v;
	json_object_foreach(fields, key, v)
	{
		if (is_backtrace(v) && !e->stack)
			e->stack = stack_of(r, v);
		else if (!strcmp(key, "duration") && json_is_integer(v) && json_integer_value(v) >= 0)
			e->duration = (uint64_t)json_integer_value(v);
	}
}

static bool add(struct dp_timeline_run *r, const struct entry *e)
{
	if (r->n == r->capacity) {
		const size_t capacity = r->capacity ? 2 * r->capacity : 1024;
		struct entry *grown = reallocarray(r->entry, capacity, sizeof(*grown));
		if (!grown)
			return false;
		r->entry = grown;
		r->capacity = capacity;
	}
	r->entry[r->n++] = *e;
	return !r->texts.failed && !r->failed;
}

static bool take_event(struct dp_timeline_run *r, const json_t *line)
{
	const json_t *mono = json_object_get(line, "mono"), *title = json_object_get(line, "title"),
	             *call = json_object_get(line, "call"), *took = json_object_get(line, "duration_ns");
	struct entry e = {.as = {.duration = DP_TIMELINE_NONE}, .text = r->texts.len};
	if (!json_is_integer(mono) || r->n >= DP_TIMELINE_MOST)
		return true;
	e.as.ns = (uint64_t)json_integer_value(mono);
	e.as.pid = (pid_t)json_integer_value(json_object_get(line, "pid"));
	e.as.tid = (pid_t)json_integer_value(json_object_get(line, "tid"));
	e.as.comm = keep(r, json_object_get(line, "comm"));
	e.as.probe = keep(r, json_is_string(title) ? title : json_object_get(line, "probe"));
	take_fields(r, json_object_get(line, "fields"), &e.as);
	if (json_is_integer(took) && json_integer_value(took) >= 0)
		e.as.duration = (uint64_t)json_integer_value(took);
	if (json_is_string(call)) {
		e.as.probe = keep(r, call);
		put_call(r, &e.as, line);
	} else {
		put_text(r, &e.as, line);
	}
	e.as.n = r->texts.len - e.text;
	return add(r, &e);
}

static void take_summary(struct dp_timeline_run *r, const json_t *line)
{
	char note[64];
	const json_int_t lost = json_integer_value(json_object_get(json_object_get(line, "lost"), "total"));
	if (lost <= 0)
		return;
	snprintf(note, sizeof(note), "%" JSON_INTEGER_FORMAT " hit%s lost", lost, lost == 1 ? " was" : "s were");
	dp_timeline_note(r->t, note);
}

/* Lines of other types are skipped. False: out of memory. */
static bool take_line(struct dp_timeline_run *r, const json_t *line)
{
	const char *type = json_string_value(json_object_get(line, "type"));
	if (!type)
		return true;
	if (!strcmp(type, "header")) {
		r->begun = true;
		r->clock_offset = json_integer_value(json_object_get(json_object_get(line, "clock"), "offset_ns"));
	} else if (!strcmp(type, "note") && json_is_string(json_object_get(line, "text"))) {
		dp_timeline_note(r->t, json_string_value(json_object_get(line, "text")));
	} else if (!strcmp(type, "summary")) {
		take_summary(r, line);
	}
	return strcmp(type, "event") != 0 || take_event(r, line);
}

/* ---- the file -------------------------------------------------------------------------------------------------------------- */

static struct dp_error *read_lines(struct dp_timeline_run *r, FILE *from, const char *name)
{
	char *line = NULL;
	size_t size = 0, damaged = 0;
	ssize_t n;
	bool good = true;
	while (good && (n = getline(&line, &size, from)) >= 0) {
		json_t *object = n > 1 && *line == '{' ? json_loadb(line, (size_t)n, JSON_ALLOW_NUL, NULL) : NULL;
		damaged += n > 1 && *line == '{' && !object;
		good = !object || take_line(r, object);
		json_decref(object);
	}
	free(line);
	if (!good)
		return dp_error_nomem();
	if (ferror(from))
		return dp_error_sys(DP_TAG_BAD_TRACE, "cannot read %s", name);
	if (damaged)
		dp_timeline_note(r->t, "some lines of the file are damaged and left out");
	if (!r->begun)
		return dp_error(DP_TAG_BAD_TRACE, "%s is no output of dynprobe -f json: it has no line of type header", name);
	return NULL;
}

static int by_time(const void *x, const void *y)
{
	const struct entry *a = x, *b = y;
	if (a->as.ns != b->as.ns)
		return a->as.ns < b->as.ns ? -1 : 1;
	return (a->text > b->text) - (a->text < b->text);
}

static struct dp_error *put_all(struct dp_timeline_run *r)
{
	const char *texts = dp_buf_str(&r->texts);
	if (r->n)
		qsort(r->entry, r->n, sizeof(*r->entry), by_time);
	for (size_t i = 0; i < r->n; i++) {
		r->entry[i].as.text = texts + r->entry[i].text;
		DP_TRY(dp_timeline_add(r->t, &r->entry[i].as));
	}
	if (r->n == DP_TIMELINE_MOST)
		dp_timeline_note(r->t, "a page has the first 5,000,000 events at most");
	return dp_timeline_end(r->t, r->clock_offset);
}

struct dp_error *dp_timeline_json(struct dp_timeline *t, FILE *from, const char *name)
{
	struct dp_timeline_run r = {.t = t, .names = json_object()};
	struct dp_error *err = r.names ? read_lines(&r, from, name) : dp_error_nomem();
	if (!err)
		err = put_all(&r);
	json_decref(r.names);
	free(r.entry);
	dp_buf_fini(&r.texts);
	return err;
}
