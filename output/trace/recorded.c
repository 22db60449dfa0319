/* SPDX-License-Identifier: MIT */
#include "output/trace/recorded.h"

#include "agent/abi.h"
#include "base/cleanup.h"
#include "base/regular.h"
#include "output/ctf/sidecar.h"
#include "output/trace/names.h"
#include "output/trace/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define STREAM      "events_"
#define TEXT_MOST   (256u << 20)
#define FRAMES_SIZE DP_RECORD_MAX

struct lane { /* a stream with its next event */
	struct dp_trace_stream *stream;
	struct dp_event event;
	uint64_t until; /* its process has another image from then on */
	unsigned number;
};

struct recorded {
	struct dp_trace_source base;
	struct dp_trace_layout layout;
	struct dp_trace_names *names;
	bool named;
	struct lane *lane;
	size_t nlanes;
	struct lane **heap; /* the lanes that have an event, the earliest at the top */
	size_t nheap;
	bool started;
	uint8_t marked[FRAMES_SIZE]; /* a payload with marked frames */
};

bool dp_recorded_is(const char *dir)
{
	dp_auto_free char *path = NULL;
	if (asprintf(&path, "%s/" DP_SIDECAR_DIR "/" DP_SIDECAR_CLASSES, dir) >= 0)
		return !access(path, F_OK);
	path = NULL;
	return false;
}

/* ---- opening --------------------------------------------------------------------------------------------------------------- */

static struct dp_error *read_text(const char *dir, const char *name, struct dp_buf *ret)
{
	dp_auto_free char *path = NULL;
	char block[65536];
	size_t n;
	if (asprintf(&path, "%s/" DP_SIDECAR_DIR "/%s", dir, name) < 0) {
		path = NULL;
		return dp_error_nomem();
	}
	const int fd = dp_open_regular(path);
	dp_auto_fclose FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;
	if (!f && fd >= 0)
		close(fd);
	if (!f)
		return dp_error_sys(DP_TAG_BAD_TRACE, "cannot read %s", path);
	while (!ret->failed && ret->len < TEXT_MOST && (n = fread(block, 1, sizeof(block), f)))
		dp_buf_put(ret, block, n);
	if (ferror(f) || ret->len >= TEXT_MOST)
		return dp_error(DP_TAG_BAD_TRACE, "cannot read %s: %s", path,
		                ferror(f) ? "an error occurred" : "it is too large");
	return ret->failed ? dp_error_nomem() : NULL;
}

static struct dp_error *read_layout(const char *dir, struct recorded *r)
{
	struct dp_buf text;
	dp_buf_init(&text);
	struct dp_error *err = read_text(dir, DP_SIDECAR_CLASSES, &text);
	if (!err)
		err = dp_trace_layout_parse(dp_buf_str(&text), text.len, &r->layout);
	dp_buf_fini(&text);
	return err;
}

/* Without the file, addresses stay numbers. */
static struct dp_error *read_names(const char *dir, struct recorded *r)
{
	struct dp_buf text;
	dp_buf_init(&text);
	struct dp_error *err = read_text(dir, DP_SIDECAR_NAMES, &text);
	if (err && err->tag == DP_TAG_BAD_TRACE) {
		err = dp_error_destroy(err);
		text.len = 0;
	}
	if (!err)
		err = dp_trace_names_parse(dp_buf_str(&text), text.len, &r->names);
	dp_buf_fini(&text);
	return err;
}

static int by_number(const void *x, const void *y)
{
	const struct lane *a = x, *b = y;
	return (a->number > b->number) - (a->number < b->number);
}

static bool is_stream(const char *name, unsigned *number)
{
	char *end = NULL;
	if (strncmp(name, STREAM, sizeof(STREAM) - 1) != 0)
		return false;
	*number = (unsigned)strtoul(name + sizeof(STREAM) - 1, &end, 10);
	return end && end != name + sizeof(STREAM) - 1 && !*end;
}

static struct dp_error *add_stream(struct recorded *r, DIR *d, const char *name, unsigned number)
{
	const int fd = openat(dirfd(d), name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	if (fd < 0 && errno == EMFILE)
		return dp_error(DP_TAG_BAD_TRACE,
		                "the trace has too many streams for this user's limit of open files: raise ulimit -n");
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		if (fd >= 0)
			close(fd);
		return dp_error(DP_TAG_BAD_TRACE, "cannot read the trace's %s: it is no file, or not yours", name);
	}
	struct lane *grown = reallocarray(r->lane, r->nlanes + 1, sizeof(*grown));
	if (!grown) {
		close(fd);
		return dp_error_nomem();
	}
	r->lane = grown;
	grown[r->nlanes] = (struct lane){.number = number};
	DP_TRY(dp_trace_stream_open(fd, name, &r->layout, &grown[r->nlanes].stream));
	r->nlanes++;
	return NULL;
}

static struct dp_error *open_streams(const char *dir, struct recorded *r)
{
	dp_auto_closedir DIR *d = opendir(dir);
	unsigned number;
	if (!d)
		return dp_error_sys(DP_TAG_BAD_TRACE, "cannot read %s", dir);
	for (struct dirent *e; (e = readdir(d));)
		if (is_stream(e->d_name, &number))
			DP_TRY(add_stream(r, d, e->d_name, number));
	if (r->nlanes)
		qsort(r->lane, r->nlanes, sizeof(*r->lane), by_number);
	r->heap = calloc(r->nlanes + 1, sizeof(*r->heap));
	return r->heap ? NULL : dp_error_nomem();
}

static bool has_backtraces(const struct dp_trace_layout *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (dp_fields_unwind(l->class[i].fields))
			return true;
	return false;
}

static struct dp_error *open_all(const char *dir, struct recorded *r)
{
	DP_TRY(read_layout(dir, r));
	DP_TRY(read_names(dir, r));
	DP_TRY(open_streams(dir, r));
	r->named = has_backtraces(&r->layout) && dp_trace_names_marks(r->names);
	r->base.class = r->layout.class;
	r->base.n = r->layout.n;
	r->base.clock_offset = r->layout.clock_offset;
	snprintf(r->base.boot, sizeof(r->base.boot), "%s", r->layout.boot);
	return NULL;
}

static void recorded_destroy(struct dp_trace_source *s)
{
	struct recorded *r = (struct recorded *)s;
	for (size_t i = 0; i < r->nlanes; i++)
		dp_trace_stream_close(r->lane[i].stream);
	free(r->lane);
	free(r->heap);
	dp_trace_names_destroy(r->names);
	dp_trace_layout_fini(&r->layout);
	free(r);
}

/* ---- events ---------------------------------------------------------------------------------------------------------------- */

static bool is_before(const struct lane *a, const struct lane *b)
{
	return a->event.ns != b->event.ns ? a->event.ns < b->event.ns : a->number < b->number;
}

static void sink_top(struct recorded *r)
{
	struct lane *top = r->heap[0];
	size_t i = 0;
	for (size_t child; (child = 2 * i + 1) < r->nheap; i = child) {
		if (child + 1 < r->nheap && is_before(r->heap[child + 1], r->heap[child]))
			child++;
		if (!is_before(r->heap[child], top))
			break;
		r->heap[i] = r->heap[child];
	}
	r->heap[i] = top;
}

static void push(struct recorded *r, struct lane *lane)
{
	size_t i = r->nheap++;
	for (; i && is_before(lane, r->heap[(i - 1) / 2]); i = (i - 1) / 2)
		r->heap[i] = r->heap[(i - 1) / 2];
	r->heap[i] = lane;
}

/* What is the same for all events of the packet is kept from event to event. */
static bool advance(struct recorded *r, struct lane *lane)
{
	const struct dp_event last = lane->event;
	struct dp_event *e = &lane->event;
	struct dp_trace_thread thread;
	bool packet;
	if (!dp_trace_stream_next(lane->stream, e, &packet))
		return false;
	e->inner_pid = last.inner_pid;
	e->inner_tid = last.inner_tid;
	e->image = last.image;
	if (!packet && e->ns < lane->until)
		return true;
	dp_trace_names_find(r->names, e->pid, e->tid, e->ns, &thread);
	e->inner_pid = thread.inner_pid;
	e->inner_tid = thread.inner_tid;
	e->image = thread.image;
	lane->until = thread.until;
	return true;
}

static void start(struct recorded *r)
{
	r->started = true;
	for (size_t i = 0; i < r->nlanes; i++)
		if (advance(r, &r->lane[i]))
			push(r, &r->lane[i]);
}

struct marking {
	const struct recorded *r;
	const struct dp_event *e;
	uint8_t *to;
};

static void mark(const struct dp_field *field, const struct dp_field_value *v, void *data)
{
	const struct marking *m = data;
	if (field->type == DP_TYPE_BACKTRACE && v->n)
		dp_trace_names_mark(m->r->names, m->e->image, m->to + (v->bytes - m->e->payload), v->n);
}

static void mark_frames(struct recorded *r, struct dp_event *e)
{
	const struct dp_fields *fields = r->layout.class[e->probe].fields;
	if (!dp_fields_unwind(fields) || e->len > sizeof(r->marked))
		return;
	memcpy(r->marked, e->payload, e->len);
	dp_fields_decode(fields, e->payload, e->len, mark, &(struct marking){r, e, r->marked});
	e->payload = r->marked;
}

static bool recorded_next(struct dp_trace_source *s, struct dp_event *ret)
{
	struct recorded *r = (struct recorded *)s;
	if (!r->started)
		start(r);
	else if (r->nheap && !advance(r, r->heap[0]))
		r->heap[0] = r->heap[--r->nheap];
	if (!r->nheap)
		return false;
	sink_top(r);
	*ret = r->heap[0]->event;
	if (r->named)
		mark_frames(r, ret);
	return true;
}

static bool recorded_bounds(struct dp_trace_source *s, uint64_t *begin, uint64_t *end)
{
	struct recorded *r = (struct recorded *)s;
	bool any = false;
	for (size_t i = 0; i < r->nlanes; i++) {
		uint64_t b, e;
		if (!dp_trace_stream_bounds(r->lane[i].stream, &b, &e))
			continue;
		*begin = any && *begin < b ? *begin : b;
		*end = any && *end > e ? *end : e;
		any = true;
	}
	return any;
}

static void recorded_skip(struct dp_trace_source *s, uint64_t from)
{
	struct recorded *r = (struct recorded *)s;
	for (size_t i = 0; i < r->nlanes; i++)
		r->lane[i].stream->from = from;
}

static uint64_t recorded_lost(struct dp_trace_source *s)
{
	const struct recorded *r = (const struct recorded *)s;
	uint64_t sum = 0;
	for (size_t i = 0; i < r->nlanes; i++)
		sum += r->lane[i].stream->discarded;
	return sum;
}

static void recorded_damages(struct dp_trace_source *s, void (*each)(const char *text, void *data), void *data)
{
	const struct recorded *r = (const struct recorded *)s;
	for (size_t i = 0; i < r->nlanes; i++)
		if (r->lane[i].stream->damage[0])
			each(r->lane[i].stream->damage, data);
}

struct dp_error *dp_recorded_open(const char *dir, struct dp_trace_source **ret)
{
	static const struct dp_trace_source_ops ops = {recorded_next, recorded_bounds,  recorded_skip,
	                                               recorded_lost, recorded_damages, recorded_destroy};
	struct recorded *r = calloc(1, sizeof(*r));
	if (!r)
		return dp_error_nomem();
	r->base.ops = &ops;
	struct dp_error *err = open_all(dir, r);
	if (err) {
		recorded_destroy(&r->base);
		return dp_error_wrap(err, "the trace %s", dir);
	}
	*ret = &r->base;
	return NULL;
}
