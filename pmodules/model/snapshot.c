/* SPDX-License-Identifier: MIT */
/* A snapshot's memory, and functions that make its parts. */
#include "pmodules/model/snapshot.h"
#include "base/path.h"
#include "base/text_hash.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <utlist.h>

/* An interned text, the sets it is in, and the attribute that has it as its key. */
struct dp_snap_text {
	UT_hash_handle hh;
	struct dp_snap_pair *attribute;
	unsigned sets;
	char text[];
};

const char *const dp_snap_register_name[DP_DWARF_REGS] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
                                                          "r9",  "r10", "r11", "r12", "r13", "r14", "r15", "rip"};

/* A random UUID (RFC 4122, version 4). */
static void make_id(char id[37])
{
	uint8_t b[16] = {0};
	if (getrandom(b, sizeof(b), 0) != sizeof(b))
		memset(b, 0xd9, sizeof(b));
	b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
	b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
	snprintf(id, 37, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2], b[3], b[4],
	         b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

struct dp_snapshot *dp_snapshot_create(void)
{
	static const char *const none[] = {NULL};
	struct dp_snapshot *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	make_id(s->id);
	s->dynprobe = s->mode = s->comm = s->application = s->exe = s->hostname = s->kernel = "";
	s->argv = none;
	s->process_state = '?';
	return s;
}

struct dp_snapshot *dp_snapshot_destroy(struct dp_snapshot *s)
{
	if (s) {
		HASH_CLEAR(hh, s->texts); /* frees the table only; its elements are in the arena */
		dp_arena_fini(&s->arena);
	}
	free(s);
	return NULL;
}

struct dp_snap_thread *dp_snapshot_thread(struct dp_snapshot *s, pid_t tid)
{
	struct dp_snap_thread *t = dp_arena_alloc(&s->arena, sizeof(*t));
	if (!t)
		return NULL;
	t->snapshot = s;
	t->tid = tid;
	t->name = "";
	t->state = '?';
	t->syscall = -1;
	DL_APPEND(s->threads, t);
	s->nthreads++;
	return t;
}

struct dp_snap_frame *dp_snapshot_frame(struct dp_snapshot *s, struct dp_snap_thread *t)
{
	struct dp_snap_frame *f = dp_arena_alloc(&s->arena, sizeof(*f));
	if (!f)
		return NULL;
	f->thread = t;
	f->index = t->nframes++;
	DL_APPEND(t->frames, f);
	return f;
}

struct dp_snap_variable *dp_snapshot_variable(struct dp_snapshot *s, struct dp_snap_variable **list,
                                              struct dp_snap_variable *owner)
{
	struct dp_snap_variable *v = dp_arena_alloc(&s->arena, sizeof(*v));
	if (!v)
		return NULL;
	v->name = v->type = v->base_type = v->object = v->unit = "";
	v->index = -1;
	if (owner) {
		v->owner = owner;
		v->frame = owner->frame;
		v->thread = owner->thread;
		v->place = DP_VAR_CHILD;
	}
	DL_APPEND(*list, v);
	return v;
}

struct dp_snap_note *dp_snapshot_note(struct dp_snapshot *s, struct dp_snap_note **list, enum dp_note_kind kind, const char *text)
{
	struct dp_snap_note *n = dp_arena_alloc(&s->arena, sizeof(*n));
	if (!n)
		return NULL;
	n->kind = kind;
	n->text = dp_arena_copy(&s->arena, text, strlen(text));
	n->module = "";
	if (!n->text)
		return NULL;
	DL_APPEND(*list, n);
	return n;
}

/* ---- texts ------------------------------------------------------------------------------------------------------------- */

enum { CLASSIFIERS = 1, TAGS = 2, TRUNCATIONS = 4 };

static struct dp_snap_text *text_of(struct dp_snapshot *s, const char *text)
{
	const size_t n = strlen(text);
	struct dp_snap_text *t;
	HASH_FIND(hh, s->texts, text, n, t);
	if (t)
		return t;
	t = dp_arena_alloc(&s->arena, sizeof(*t) + n + 1);
	if (!t)
		return NULL;
	memcpy(t->text, text, n);
	HASH_ADD_KEYPTR(hh, s->texts, t->text, n, t);
	return t;
}

const char *dp_snapshot_text(struct dp_snapshot *s, const char *text)
{
	const struct dp_snap_text *t = text && *text ? text_of(s, text) : NULL;
	return t ? t->text : "";
}

/* ---- attributes and words -------------------------------------------------------------------------------------------- */

static struct dp_snap_pair *pair_of(struct dp_snapshot *s, const char *key)
{
	struct dp_snap_text *t = text_of(s, key);
	if (!t || t->attribute)
		return t ? t->attribute : NULL;
	struct dp_snap_pair *p = dp_arena_alloc(&s->arena, sizeof(*p));
	if (!p)
		return NULL;
	p->key = t->text;
	p->text = "";
	DL_APPEND(s->attributes, p);
	t->attribute = p;
	return p;
}

void dp_snapshot_set_int(struct dp_snapshot *s, const char *key, int64_t value)
{
	struct dp_snap_pair *p = pair_of(s, key);
	if (!p)
		return;
	p->is_int = true;
	p->number = value;
	p->text = "";
}

void dp_snapshot_set_text(struct dp_snapshot *s, const char *key, const char *value)
{
	struct dp_snap_pair *p = pair_of(s, key);
	if (!p)
		return;
	p->is_int = false;
	p->number = 0;
	p->text = dp_snapshot_text(s, value);
}

static void add_word(struct dp_snapshot *s, struct dp_snap_word **list, unsigned set, const char *text)
{
	struct dp_snap_text *t = text_of(s, text);
	if (!t || t->sets & set)
		return;
	struct dp_snap_word *w = dp_arena_alloc(&s->arena, sizeof(*w));
	if (!w)
		return;
	w->text = t->text;
	DL_APPEND(*list, w);
	t->sets |= set;
}

void dp_snapshot_classify(struct dp_snapshot *s, const char *classifier)
{
	add_word(s, &s->classifiers, CLASSIFIERS, classifier);
}

void dp_snapshot_tag(struct dp_snapshot *s, const char *tag)
{
	add_word(s, &s->tags, TAGS, tag);
}

/* ---- additions by pmodules ------------------------------------------------------------------------------------------------ */

static const char *const added_name[] = {"attribute ", "classifier ", "tag "};
static const unsigned added_set[] = {0, CLASSIFIERS, TAGS};

void dp_snapshot_adds(struct dp_snapshot *s, enum dp_snap_added what, const char *text, const char *module)
{
	const struct dp_snap_text *t = text_of(s, text);
	if (!t || (what == DP_ADDED_ATTRIBUTE ? t->attribute != NULL : (t->sets & added_set[what]) != 0))
		return;
	struct dp_snap_pair *p = dp_arena_alloc(&s->arena, sizeof(*p));
	if (!p)
		return;
	p->key = dp_arena_printf(&s->arena, "%s%s", added_name[what], text);
	p->text = dp_snapshot_text(s, module);
	if (p->key)
		DL_APPEND(s->made_by, p);
}

static void drop_word(struct dp_snap_word **list, const char *text)
{
	struct dp_snap_word *w, *next;
	DL_FOREACH_SAFE(*list, w, next)
	if (!strcmp(w->text, text))
		DL_DELETE(*list, w);
}

static void drop(struct dp_snapshot *s, enum dp_snap_added what, const char *text)
{
	struct dp_snap_text *t = text_of(s, text);
	if (!t)
		return;
	t->sets &= ~added_set[what];
	if (what != DP_ADDED_ATTRIBUTE) {
		drop_word(what == DP_ADDED_TAG ? &s->tags : &s->classifiers, text);
	} else if (t->attribute) {
		DL_DELETE(s->attributes, t->attribute);
		t->attribute = NULL;
	}
}

void dp_snapshot_take_back(struct dp_snapshot *s, bool (*is_of)(const char *module, void *data), void *data)
{
	struct dp_snap_pair *p, *next;
	DL_FOREACH_SAFE(s->made_by, p, next)
	{
		if (!is_of(p->text, data))
			continue;
		for (unsigned what = 0; what < sizeof(added_name) / sizeof(*added_name); what++)
			if (!strncmp(p->key, added_name[what], strlen(added_name[what])))
				drop(s, (enum dp_snap_added)what, p->key + strlen(added_name[what]));
		DL_DELETE(s->made_by, p);
	}
}

static void index_words(struct dp_snapshot *s, const struct dp_snap_word *list, unsigned set)
{
	const struct dp_snap_word *w;
	DL_FOREACH(list, w)
	{
		struct dp_snap_text *t = text_of(s, w->text);
		if (t)
			t->sets |= set;
	}
}

void dp_snapshot_index(struct dp_snapshot *s)
{
	struct dp_snap_pair *p;
	DL_FOREACH(s->attributes, p)
	{
		struct dp_snap_text *t = text_of(s, p->key);
		if (t)
			t->attribute = p;
	}
	index_words(s, s->classifiers, CLASSIFIERS);
	index_words(s, s->tags, TAGS);
	index_words(s, s->truncations, TRUNCATIONS);
}

void dp_snapshot_truncated(struct dp_snapshot *s, const char *fmt, ...)
{
	char text[256];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	add_word(s, &s->truncations, TRUNCATIONS, text);
	dp_snapshot_classify(s, "truncated");
}

void dp_snapshot_settle(struct dp_snapshot *s)
{
	struct dp_snap_word *w, *truncated = NULL;
	if (!s->arena.failed || s->full[0].text)
		return;
	DL_FOREACH(s->classifiers, w)
	truncated = truncated || strcmp(w->text, "truncated") ? truncated : w;
	s->full[0].text = DP_SNAPSHOT_FULL;
	DL_APPEND(s->truncations, &s->full[0]);
	s->full[1].text = "truncated";
	if (!truncated)
		DL_APPEND(s->classifiers, &s->full[1]);
}

/* ---- memory ----------------------------------------------------------------------------------------------------------- */

/* Threads that faulted come first in the list, so the first one did not fault only if none did. */
bool dp_snap_thread_is_subject(const struct dp_snap_thread *t)
{
	return t->is_fault || (t->snapshot && t == t->snapshot->threads);
}

static const struct dp_snap_frame *of_interest(const struct dp_snap_thread *t)
{
	const struct dp_snap_frame *f;
	for (f = t->frames; f; f = f->next)
		if (f->variables)
			return f;
	return t->frames;
}

bool dp_snap_frame_is_subject(const struct dp_snap_frame *f)
{
	const struct dp_snap_thread *t = f->thread;
	return f->is_fault || (t && !t->is_fault && dp_snap_thread_is_subject(t) && f == of_interest(t));
}

const char *dp_snapshot_object_name(const struct dp_snapshot *s, const char *path)
{
	for (size_t i = 0; i < s->nobjects; i++)
		if (s->objects[i].name && *s->objects[i].name && !strcmp(s->objects[i].path, path))
			return s->objects[i].name;
	return dp_path_last(path);
}

const struct dp_snap_map *dp_snapshot_map_at(const struct dp_snapshot *s, uint64_t addr)
{
	for (size_t i = 0; i < s->nmaps; i++)
		if (addr >= s->maps[i].start && addr < s->maps[i].end)
			return &s->maps[i];
	return NULL;
}

static const struct dp_snap_memory *memory_at(const struct dp_snapshot *s, uint64_t addr)
{
	size_t low = 0, high = s->nmemory;
	while (low < high) {
		const size_t middle = (low + high) / 2;
		const struct dp_snap_memory *m = &s->memory[middle];
		if (addr < m->address)
			high = middle;
		else if (addr - m->address >= m->size)
			low = middle + 1;
		else
			return m;
	}
	return NULL;
}

size_t dp_snapshot_read(const struct dp_snapshot *s, uint64_t addr, void *buf, size_t n)
{
	size_t done = 0;
	while (done < n) {
		const struct dp_snap_memory *m = memory_at(s, addr + done);
		if (!m)
			break;
		const uint64_t offset = addr + done - m->address;
		const uint64_t here = m->size - offset < n - done ? m->size - offset : n - done;
		memcpy((uint8_t *)buf + done, m->bytes + offset, here);
		done += here;
	}
	return done;
}
