/* SPDX-License-Identifier: MIT */
/*
 * Decodes a file's bytes into the model, by the tables of file_table.c. Input is untrusted: every length is checked against the
 * rest of the input, memory comes from the snapshot's arena, which is limited, and so is the depth of trees.
 */
#include "pmodules/file/file_decode_internal.h"

#include <inttypes.h>
#include <utlist.h>

static struct dp_error *decode(struct dp_file_reader *r, const struct dp_store_record *record, struct dp_file_span in,
                               const struct dp_file_place *at, void *obj) DP_MUST_CHECK;

struct dp_error *dp_file_bad(const struct dp_file_reader *r, const uint8_t *p, const char *what)
{
	return dp_error(DP_TAG_BAD_SNAPSHOT, "section %s, byte %zu (uncompressed): %s", r->section, (size_t)(p - r->start), what);
}

/* ---- fields */

static bool get_bytes(struct dp_file_span *in, size_t n, struct dp_file_field *f)
{
	if (n > (size_t)(in->end - in->p))
		return false;
	f->span = (struct dp_file_span){in->p, in->p + n};
	in->p += n;
	memcpy(&f->value, f->span.p, n < 8 ? n : 8);
	return true;
}

struct dp_error *dp_file_field(struct dp_file_reader *r, struct dp_file_span *in, struct dp_file_field *f)
{
	const uint8_t *begin = in->p;
	uint64_t key, n;
	*f = (struct dp_file_field){0};
	if (!dp_file_get_varint(in, &key) || key >> 3 > UINT32_MAX || !(key >> 3))
		return dp_file_bad(r, begin, "a field has no number");
	f->number = (unsigned)(key >> 3);
	f->wire = (enum dp_wire)(key & 7);
	switch ((unsigned)f->wire) {
	case DP_WIRE_VARINT:
		return dp_file_get_varint(in, &f->value) ? NULL : dp_file_bad(r, begin, "a number is not terminated");
	case DP_WIRE_8:
		return get_bytes(in, 8, f) ? NULL : dp_file_bad(r, begin, "a number of 8 bytes exceeds its record");
	case DP_WIRE_4:
		return get_bytes(in, 4, f) ? NULL : dp_file_bad(r, begin, "a number of 4 bytes exceeds its record");
	case DP_WIRE_BYTES:
		return dp_file_get_varint(in, &n) && get_bytes(in, n, f) ? NULL
		                                                         : dp_file_bad(r, begin, "a field exceeds its record");
	}
	return dp_file_bad(r, begin, "a field has an unknown wire type");
}

/* Counts the remaining fields with that number: the size of an array. */
static size_t count_fields(struct dp_file_reader *r, struct dp_file_span in, unsigned number)
{
	struct dp_file_field f;
	size_t n = 0;
	while (in.p < in.end) {
		struct dp_error *err = dp_file_field(r, &in, &f);
		if (err) {
			dp_error_destroy(err);
			break;
		}
		n += f.number == number;
	}
	return n;
}

/* ---- values */

static void store_uint(void *at, size_t size, uint64_t v)
{
	memcpy(at, &v, size);
}

static struct dp_error *no_memory(struct dp_file_reader *r, const struct dp_file_field *f)
{
	return dp_file_bad(r, f->span.p ? f->span.p : r->start, "its contents exceed the memory limit of a snapshot (256 MiB)");
}

struct dp_error *dp_file_text_of(struct dp_file_reader *r, uint64_t number, const struct dp_file_text **ret)
{
	static const struct dp_file_text none = {0};
	if (number > r->texts->n)
		return dp_error(DP_TAG_BAD_SNAPSHOT, "section %s: a field names text %" PRIu64 ", and there are %zu", r->section,
		                number, r->texts->n);
	*ret = number ? &r->texts->text[number - 1] : &none;
	return NULL;
}

static struct dp_error *take_text(struct dp_file_reader *r, const struct dp_store_row *row, const struct dp_file_field *f,
                                  void *obj)
{
	const struct dp_file_text *t = NULL;
	DP_TRY(dp_file_text_of(r, f->value, &t));
	const char *text = f->value ? r->texts->bytes + t->at : NULL;
	if (row->keep == DP_STORE_ID) {
		if (text)
			snprintf((char *)obj + row->offset, row->size, "%s", text);
		return NULL;
	}
	if (text || row->keep != DP_STORE_TEXT)
		dp_file_store(obj, row->offset, text);
	return NULL;
}

static struct dp_error *take_word(struct dp_file_reader *r, const struct dp_store_row *row, const struct dp_file_field *f,
                                  void *obj)
{
	const struct dp_file_text *t = NULL;
	DP_TRY(dp_file_text_of(r, f->value, &t));
	struct dp_snap_word *list = dp_file_load(obj, row->offset), *w = dp_arena_alloc(&r->s->arena, sizeof(*w));
	if (!w)
		return no_memory(r, f);
	w->text = f->value ? r->texts->bytes + t->at : "";
	DL_APPEND(list, w);
	dp_file_store(obj, row->offset, list);
	return NULL;
}

static void take_number(const struct dp_store_row *row, uint64_t v, void *at)
{
	size_t n = 0;
	switch (row->keep) {
	case DP_STORE_INT:
		v = v >> 1 ^ (0 - (v & 1));
		break;
	case DP_STORE_BOOL:
		v = v != 0;
		break;
	case DP_STORE_ENUM:
		while (row->words[n])
			n++;
		v = v < n ? v : (uint64_t)row->usual;
		break;
	default:
		break;
	}
	store_uint(at, row->size, v);
}

/* ---- records */

static void link_to(const struct dp_store_record *record, const struct dp_file_place *at, struct dp_snapshot *s, void *obj)
{
	switch (record->link) {
	case DP_LINK_NONE:
	case DP_LINK_VARIABLE: /* done by dp_file_decode_variable() */
		break;
	case DP_LINK_THREAD:
		((struct dp_snap_thread *)obj)->snapshot = s;
		s->nthreads++;
		break;
	case DP_LINK_FRAME:
		((struct dp_snap_frame *)obj)->thread = at->thread;
		((struct dp_snap_frame *)obj)->index = at->thread->nframes++;
		break;
	}
}

static void set_usual(const struct dp_store_record *record, void *obj)
{
	for (size_t i = 0; i < record->n; i++) {
		const struct dp_store_row *row = &record->row[i];
		if (row->keep == DP_STORE_TEXT)
			dp_file_store(obj, row->offset, "");
		else if (row->usual && row->keep != DP_STORE_ENUM)
			store_uint((char *)obj + row->offset, row->size, (uint64_t)(int64_t)row->usual);
	}
}

static struct dp_error *fill(struct dp_file_reader *r, const struct dp_store_record *record, const struct dp_file_field *f,
                             const struct dp_file_place *at, void *obj)
{
	if (record->link == DP_LINK_VARIABLE)
		return dp_file_decode_variable(r, f, at, obj);
	struct dp_file_place inside = *at;
	link_to(record, at, r->s, obj);
	if (record->link == DP_LINK_THREAD)
		inside.thread = obj;
	else if (record->link == DP_LINK_FRAME)
		inside.frame = obj;
	set_usual(record, obj);
	return decode(r, record, f->span, &inside, obj);
}

/*
 * `prev` and `next` are the first members of all list elements (the encoder asserts this). The first one's prev is the last
 * element.
 */
static void append(void *obj, size_t offset, void *element)
{
	enum { PREV = offsetof(struct dp_snap_note, prev), NEXT = offsetof(struct dp_snap_note, next) };
	void *head = dp_file_load(obj, offset), *tail = head ? dp_file_load(head, PREV) : element;
	if (head)
		dp_file_store(tail, NEXT, element);
	else
		dp_file_store(obj, offset, element);
	dp_file_store(element, PREV, tail);
	dp_file_store(head ? head : element, PREV, element);
}

struct dp_error *dp_file_take_element(struct dp_file_reader *r, const struct dp_store_row *row, const struct dp_file_field *f,
                                      const struct dp_file_place *at, void *obj)
{
	void *element = dp_arena_alloc(&r->s->arena, row->of->size);
	if (!element)
		return no_memory(r, f);
	if (row->keep == DP_STORE_LIST)
		append(obj, row->offset, element);
	else
		dp_file_store(obj, row->offset, element);
	return fill(r, row->of, f, at, element);
}

/* Allocates an array at its first element. A section that occurs twice starts again. */
static struct dp_error *make_room(struct dp_file_reader *r, const struct dp_store_row *row, size_t size, size_t n, void *obj)
{
	const uint64_t none = 0;
	void *room = dp_arena_alloc(&r->s->arena, size * (n + 1));
	if (!room)
		return dp_file_bad(r, r->start, "its contents exceed the memory limit of a snapshot (256 MiB)");
	dp_file_store(obj, row->offset, room);
	if (row->count)
		memcpy((char *)obj + row->count, &none, sizeof(none));
	return NULL;
}

static struct dp_error *take_array(struct dp_file_reader *r, const struct dp_store_row *row, const struct dp_file_field *f,
                                   void *obj)
{
	static const struct dp_file_place nowhere = {0};
	uint64_t n;
	memcpy(&n, (char *)obj + row->count, sizeof(n));
	void *element = (char *)dp_file_load(obj, row->offset) + n * row->of->size;
	n++;
	memcpy((char *)obj + row->count, &n, sizeof(n));
	return fill(r, row->of, f, &nowhere, element);
}

/* Takes all texts of the row at once, at the first. */
static struct dp_error *take_texts(struct dp_file_reader *r, const struct dp_store_row *row, struct dp_file_span in,
                                   const char **list)
{
	const struct dp_file_text *t = NULL;
	struct dp_file_field f;
	while (in.p < in.end) {
		DP_TRY(dp_file_field(r, &in, &f));
		if (f.number != row->number)
			continue;
		DP_TRY(dp_file_text_of(r, f.value, &t));
		if (f.value)
			*list++ = r->texts->bytes + t->at;
	}
	return NULL;
}

static struct dp_error *take_registers(struct dp_file_reader *r, struct dp_file_span in, struct dp_frame_regs *to)
{
	struct dp_file_field f;
	while (in.p < in.end) {
		DP_TRY(dp_file_field(r, &in, &f));
		if (f.number > DP_DWARF_REGS || f.wire != DP_WIRE_8)
			continue;
		to->value[f.number - 1] = f.value;
		to->known |= 1u << (f.number - 1);
	}
	return NULL;
}

static struct dp_error *take_frame_registers(struct dp_file_reader *r, const struct dp_file_field *f, struct dp_snap_frame *frame)
{
	if (f->span.p == f->span.end) {
		frame->registers = frame->index ? frame->prev->registers : NULL;
		return NULL;
	}
	struct dp_frame_regs *registers = dp_arena_alloc(&r->s->arena, sizeof(*registers));
	if (!registers)
		return no_memory(r, f);
	frame->registers = registers;
	return take_registers(r, f->span, registers);
}

static struct dp_error *take_blob(struct dp_file_reader *r, const struct dp_store_row *row, const struct dp_file_field *f,
                                  void *obj)
{
	const uint64_t n = (uint64_t)(f->span.end - f->span.p);
	const char *copy = dp_arena_copy(&r->s->arena, (const char *)f->span.p, n);
	if (!copy)
		return no_memory(r, f);
	dp_file_store(obj, row->offset, copy);
	memcpy((char *)obj + row->count, &n, sizeof(n));
	return NULL;
}

static enum dp_wire wire_of(enum dp_store_kind keep)
{
	switch (keep) {
	case DP_STORE_REAL:
		return DP_WIRE_8;
	case DP_STORE_LIST:
	case DP_STORE_ARRAY:
	case DP_STORE_SUB:
	case DP_STORE_REGISTERS:
	case DP_STORE_FRAME_REGISTERS:
	case DP_STORE_BLOB:
		return DP_WIRE_BYTES;
	default:
		return DP_WIRE_VARINT;
	}
}

static struct dp_error *take(struct dp_file_reader *r, const struct dp_store_row *row, const struct dp_file_field *f,
                             const struct dp_file_place *at, void *obj)
{
	void *to = (char *)obj + row->offset;
	switch ((enum dp_store_kind)row->keep) {
	case DP_STORE_UINT:
	case DP_STORE_INT:
	case DP_STORE_HEX:
	case DP_STORE_NUMBER:
	case DP_STORE_BOOL:
	case DP_STORE_CHAR:
	case DP_STORE_ENUM:
	case DP_STORE_REAL:
		take_number(row, f->value, to);
		return NULL;
	case DP_STORE_TEXT:
	case DP_STORE_TEXT_OR_NULL:
	case DP_STORE_STRING:
	case DP_STORE_ID:
		return take_text(r, row, f, obj);
	case DP_STORE_TEXTS:
	case DP_STORE_TEXTS_OR_NULL:
		return NULL; /* done at the first one */
	case DP_STORE_WORDS:
		return take_word(r, row, f, obj);
	case DP_STORE_LIST:
	case DP_STORE_SUB:
		return dp_file_take_element(r, row, f, at, obj);
	case DP_STORE_ARRAY:
		return take_array(r, row, f, obj);
	case DP_STORE_REGISTERS:
		return take_registers(r, f->span, to);
	case DP_STORE_FRAME_REGISTERS:
		return take_frame_registers(r, f, obj);
	case DP_STORE_BLOB:
		return take_blob(r, row, f, obj);
	}
	return NULL;
}

static const struct dp_store_row *row_of(const struct dp_store_record *record, unsigned number)
{
	if (number <= record->n && record->row[number - 1].number == number)
		return &record->row[number - 1];
	for (size_t i = 0; i < record->n; i++)
		if (record->row[i].number == number)
			return &record->row[i];
	return NULL;
}

static bool has_room(enum dp_store_kind keep)
{
	return keep == DP_STORE_ARRAY || keep == DP_STORE_TEXTS || keep == DP_STORE_TEXTS_OR_NULL;
}

static struct dp_error *decode(struct dp_file_reader *r, const struct dp_store_record *record, struct dp_file_span in,
                               const struct dp_file_place *at, void *obj)
{
	uint64_t roomy = 0; /* a bit for each row whose array is allocated */
	struct dp_file_field f;
	while (in.p < in.end) {
		const struct dp_file_span here = in;
		DP_TRY(dp_file_field(r, &in, &f));
		const struct dp_store_row *row = row_of(record, f.number);
		if (!row)
			continue; /* from a newer writer */
		if (f.wire != wire_of((enum dp_store_kind)row->keep))
			return dp_file_bad(r, here.p, "a field's wire type does not fit its number");
		const uint64_t bit = 1ull << (row - record->row);
		if (has_room((enum dp_store_kind)row->keep) && !(roomy & bit)) {
			roomy |= bit;
			DP_TRY(make_room(r, row, row->of ? row->of->size : sizeof(char *), count_fields(r, here, f.number), obj));
			if (!row->of)
				DP_TRY(take_texts(r, row, here, dp_file_load(obj, row->offset)));
		}
		DP_TRY(take(r, row, &f, at, obj));
	}
	return NULL;
}

struct dp_error *dp_file_decode(struct dp_snapshot *s, const struct dp_file_texts *texts, const char *section,
                                const uint8_t *bytes, size_t n)
{
	static const struct dp_file_place top = {0};
	struct dp_file_reader r = {.s = s, .texts = texts, .section = section, .start = bytes};
	return decode(&r, &dp_store_snapshot, (struct dp_file_span){bytes, bytes + n}, &top, s);
}

/*
 * The texts stay in place in one copy of the section. Each gets its NUL where the next one's key was, which has already been
 * read.
 */
struct dp_error *dp_file_decode_texts(struct dp_snapshot *s, const uint8_t *bytes, size_t n, struct dp_file_texts *ret)
{
	struct dp_file_reader r = {.s = s, .section = "STRS", .start = bytes};
	struct dp_file_span in = {bytes, bytes + n};
	struct dp_file_field f;
	const size_t count = count_fields(&r, in, 1);
	if (count > DP_FILE_STRINGS_MAX)
		return dp_file_bad(&r, bytes, "there are too many texts");
	char *copy = dp_arena_copy(&s->arena, (const char *)bytes, n);
	struct dp_file_text *text = copy ? dp_arena_alloc(&s->arena, (count + 1) * sizeof(*text)) : NULL;
	if (!text)
		return no_memory(&r, &(struct dp_file_field){0});
	*ret = (struct dp_file_texts){.bytes = copy, .text = text};
	while (in.p < in.end) {
		DP_TRY(dp_file_field(&r, &in, &f));
		if (f.number != 1)
			continue;
		if (f.wire != DP_WIRE_BYTES)
			return dp_file_bad(&r, in.p, "a text has the wrong wire type");
		const size_t at = (size_t)(f.span.p - bytes), end = (size_t)(f.span.end - bytes);
		text[ret->n++] = (struct dp_file_text){(uint32_t)at, (uint32_t)(end - at)};
		copy[end] = '\0';
	}
	return NULL;
}
