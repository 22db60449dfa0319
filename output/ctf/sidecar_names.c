/* SPDX-License-Identifier: MIT */
#include "agent/abi.h"
#include "base/arena.h"
#include "base/text_hash.h"
#include "output/events/frames.h"
#include "output/ctf/sidecar.h"
#include "output/format/put.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SEEN_MOST (1u << 18)
#define LATEST    1024u /* a power of two */

enum kind { PROCESS, IMAGE, THREAD, FRAME, EXACT_FRAME };
enum { SIGNAL = 1, POINTER = 2, NAMELESS = 4 };

struct seen_key { /* a hash key: no padding */
	uint64_t kind, image, at;
};

struct seen {
	struct seen_key key;
	uint64_t value; /* FRAME: SIGNAL, NAMELESS, and POINTER once that was written */
	UT_hash_handle hh;
};

struct dp_sidecar_names {
	struct dp_buf *lines;
	struct dp_arena arena;
	struct seen *seen;
	struct seen *process;        /* of the last event, with its image */
	struct seen *latest[LATEST]; /* frames: few addresses make up most backtraces */
	uint64_t image;              /* the last one that was described */
	const struct dp_event *event;
	bool failed;
};

struct dp_sidecar_names *dp_sidecar_names_create(struct dp_buf *lines)
{
	struct dp_sidecar_names *n = calloc(1, sizeof(*n));
	if (n)
		n->lines = lines;
	return n;
}

struct dp_sidecar_names *dp_sidecar_names_destroy(struct dp_sidecar_names *names)
{
	if (!names)
		return NULL;
	HASH_CLEAR(hh, names->seen);
	dp_arena_fini(&names->arena);
	free(names);
	return NULL;
}

bool dp_sidecar_names_failed(const struct dp_sidecar_names *names)
{
	return names->failed;
}

/* Finds the entry, or adds it and sets *is_new. NULL: there is no room. */
static struct seen *see(struct dp_sidecar_names *n, enum kind kind, uint64_t image, uint64_t at, bool *is_new)
{
	const struct seen_key key = {kind, image, at};
	struct seen *s;
	HASH_FIND(hh, n->seen, &key, sizeof(key), s);
	*is_new = !s;
	if (s)
		return s;
	const unsigned before = HASH_COUNT(n->seen);
	s = before < SEEN_MOST ? dp_arena_alloc(&n->arena, sizeof(*s)) : NULL;
	n->failed |= !s;
	if (!s)
		return NULL;
	s->key = key;
	HASH_ADD(hh, n->seen, key, sizeof(s->key), s);
	n->failed |= HASH_COUNT(n->seen) == before;
	return s;
}

static void begin(struct dp_buf *b, const char *type)
{
	dp_put_json_member(b, "{", "type", type);
}

static void put_number(struct dp_buf *b, const char *key, uint64_t v)
{
	dp_buf_printf(b, ",\"%s\":%" PRIu64, key, v);
}

/* ---- processes ------------------------------------------------------------------------------------------------------------- */

static void put_module(struct dp_buf *b, uint64_t serial, size_t i, struct dp_module *m)
{
	begin(b, "module");
	put_number(b, "image", serial);
	put_number(b, "module", i);
	dp_put_json_member(b, ",", "path", dp_module_path(m));
	dp_put_json_member(b, ",", "build_id", dp_module_build_id(m));
	dp_put_str(b, "}\n");
}

static void put_map(struct dp_buf *b, uint64_t serial, struct dp_image *image, const struct dp_map *map)
{
	const struct dp_module *m = dp_image_module_at(image, map->start);
	size_t i = 0;
	while (m && i < dp_image_nmodules(image) && dp_image_module(image, i) != m)
		i++;
	if (!m || !map->path[0])
		return;
	begin(b, "map");
	put_number(b, "image", serial);
	put_number(b, "module", i);
	dp_buf_printf(b, ",\"range\":\"%" PRIx64 "-%" PRIx64 " %c%c%cp %08" PRIx64 " %02x:%02x\"", map->start.v, map->end.v,
	              map->read ? 'r' : '-', map->write ? 'w' : '-', map->exec ? 'x' : '-', map->offset, map->dev_major,
	              map->dev_minor);
	put_number(b, "inode", map->inode);
	dp_put_str(b, "}\n");
}

/* What is needed to name further addresses by the files. */
static void put_image(struct dp_sidecar_names *n, struct dp_image *image)
{
	const uint64_t serial = dp_image_serial(image);
	bool is_new;
	if (serial == n->image || !see(n, IMAGE, serial, 0, &is_new) || !is_new)
		return;
	n->image = serial;
	struct dp_image *now = dp_image_latest(image);
	for (size_t i = 0; i < dp_image_nmodules(now); i++)
		put_module(n->lines, serial, i, dp_image_module(now, i));
	for (size_t i = 0; i < dp_image_nmaps(now); i++)
		put_map(n->lines, serial, now, dp_image_map(now, i));
}

static const char *executable(const struct dp_image *image)
{
	return image && dp_image_nmodules(image) ? dp_module_path(dp_image_module(image, 0)) : "";
}

/*
 * With --pending a process has an image for each session, and each drain passes hits of one after the other: an image is noted
 * once, or the file would grow with every drain.
 */
static void note_process(struct dp_sidecar_names *n, const struct dp_event *e)
{
	const uint64_t serial = e->image ? dp_image_serial(e->image) : 0;
	const struct seen *p = n->process;
	bool is_new;
	if (p && p->key.at == (uint64_t)e->pid && p->key.image == serial)
		return;
	n->process = see(n, PROCESS, serial, (uint64_t)e->pid, &is_new);
	if (!n->process || !is_new)
		return;
	begin(n->lines, "process");
	put_number(n->lines, "pid", (uint64_t)e->pid);
	put_number(n->lines, "ns", e->ns);
	put_number(n->lines, "image", serial);
	dp_put_json_member(n->lines, ",", "exe", executable(e->image));
	dp_put_str(n->lines, "}\n");
}

/* In a pid namespace of its own a thread has other numbers, too. */
static void note_thread(struct dp_sidecar_names *n, const struct dp_event *e)
{
	bool is_new;
	if ((!e->inner_pid || e->inner_pid == e->pid) && (!e->inner_tid || e->inner_tid == e->tid))
		return;
	see(n, THREAD, (uint64_t)e->pid, (uint64_t)e->tid, &is_new);
	if (!is_new)
		return;
	begin(n->lines, "thread");
	put_number(n->lines, "pid", (uint64_t)e->pid);
	put_number(n->lines, "tid", (uint64_t)e->tid);
	put_number(n->lines, "inner_pid", (uint64_t)e->inner_pid);
	put_number(n->lines, "inner_tid", (uint64_t)e->inner_tid);
	dp_put_str(n->lines, "}\n");
}

/* ---- frames ---------------------------------------------------------------------------------------------------------------- */

static void put_names(struct dp_buf *b, struct dp_image *image, uint64_t pc, bool exact, const char *symbol)
{
	char text[DP_FRAME_TEXT];
	dp_put_json_member(b, ",", "symbol", symbol);
	dp_frame_describe(image, pc, exact, true, text);
	if (strcmp(text, symbol) != 0)
		dp_put_json_member(b, ",", "readable", text);
	dp_frame_function(image, pc, exact, text);
	dp_put_json_member(b, ",", "function", text);
}

static void put_frame(struct dp_buf *b, struct dp_image *image, uint64_t pc, bool exact, const char *symbol)
{
	begin(b, "frame");
	put_number(b, "image", dp_image_serial(image));
	dp_put_json_hex(b, "pc", pc);
	dp_put_str(b, exact ? ",\"exact\":true" : "");
	put_names(b, image, pc, exact, symbol);
	dp_put_str(b, dp_frame_is_signal_return(image, pc) ? ",\"signal_return\":true" : "");
	dp_put_str(b, dp_frame_begins_thread(image, pc) ? ",\"begins_thread\":true" : "");
	dp_put_str(b, "}\n");
}

/* The frame below has no unwind table, so this one was found by its frame pointer. */
static void note_pointer(struct dp_sidecar_names *n, struct seen *below)
{
	if (!below || below->value & POINTER)
		return;
	below->value |= POINTER;
	begin(n->lines, "by_pointer");
	put_number(n->lines, "image", below->key.image);
	dp_put_json_hex(n->lines, "pc", below->key.at);
	dp_put_str(n->lines, "}\n");
}

/* Finds or adds the entry of a frame. */
static struct seen *see_frame(struct dp_sidecar_names *n, uint64_t pc, bool exact, bool *is_new)
{
	const uint64_t image = dp_image_serial(n->event->image), kind = exact ? EXACT_FRAME : FRAME;
	struct seen **latest = &n->latest[(pc * UINT64_C(0x9e3779b97f4a7c15) >> 50 ^ exact) & (LATEST - 1)], *s = *latest;
	*is_new = false;
	if (s && s->key.at == pc && s->key.image == image && s->key.kind == kind)
		return s;
	return *latest = see(n, exact ? EXACT_FRAME : FRAME, image, pc, is_new);
}

/* Generated code may get its name later. */
static struct seen *note_frame(struct dp_sidecar_names *n, uint64_t pc, size_t i, bool exact)
{
	struct dp_image *image = n->event->image;
	char symbol[DP_FRAME_TEXT];
	bool is_new;
	struct seen *s = see_frame(n, pc, exact, &is_new);
	if (!s || (!is_new && !(s->value & NAMELESS)))
		return s;
	if (is_new)
		s->value = i && dp_frame_is_signal_return(image, pc) ? SIGNAL : 0;
	exact |= s->value & SIGNAL;
	dp_frame_describe(image, pc, exact, false, symbol);
	const bool nameless = !strncmp(symbol, "0x", 2);
	if (is_new || !nameless)
		put_frame(n->lines, image, pc, exact, symbol);
	s->value = (s->value & ~(uint64_t)NAMELESS) | (nameless ? NAMELESS : 0);
	return s;
}

static void note_backtrace(const struct dp_field *field, const struct dp_field_value *v, void *data)
{
	struct dp_sidecar_names *n = data;
	struct seen *s = NULL;
	bool exact = true;
	if (field->type != DP_TYPE_BACKTRACE)
		return;
	put_image(n, n->event->image);
	for (size_t i = 0; i < v->n; i++) {
		uint64_t word;
		memcpy(&word, v->bytes + i * sizeof(word), sizeof(word));
		if (dp_frame_is_by_pointer(word))
			note_pointer(n, s);
		s = dp_frame_pc(word) ? note_frame(n, dp_frame_pc(word), i, exact) : NULL;
		exact = s && s->value & SIGNAL;
	}
}

void dp_sidecar_names_thread(struct dp_sidecar_names *names, const struct dp_event *e)
{
	note_process(names, e);
	note_thread(names, e);
}

void dp_sidecar_names_event(struct dp_sidecar_names *names, const struct dp_fields *fields, const struct dp_event *e)
{
	dp_sidecar_names_thread(names, e);
	if (!e->image || !dp_fields_unwind(fields))
		return;
	names->event = e;
	dp_fields_decode(fields, e->payload, e->len, note_backtrace, names);
}
