/* SPDX-License-Identifier: MIT */
/* Encodes the model like Protocol Buffers, by the tables of file_table.c. */
#include "pmodules/file/file_internal.h"

#include <utlist.h>

static void encode(struct dp_file_encoder *e, const struct dp_store_record *r, const void *obj);

static void put_varint(struct dp_buf *to, uint64_t v)
{
	uint8_t *p = dp_file_room(to, DP_VARINT_MAX);
	if (p)
		to->len = (size_t)(dp_file_varint(p, v) - to->data);
}

static void put_key(struct dp_file_encoder *e, unsigned number, enum dp_wire wire)
{
	put_varint(e->to, number << 3 | wire);
}

void dp_file_put_number(struct dp_file_encoder *e, unsigned number, uint64_t v)
{
	put_key(e, number, DP_WIRE_VARINT);
	put_varint(e->to, v);
}

/* Little-endian. The usual sizes are separate cases, so that memcpy is inlined. */
static uint64_t load_uint(const void *at, size_t size)
{
	uint64_t v = 0;
	switch (size) {
	case 1:
		return *(const uint8_t *)at;
	case 4:
		memcpy(&v, at, 4);
		return v;
	case 8:
		memcpy(&v, at, 8);
		return v;
	default:
		memcpy(&v, at, size);
		return v;
	}
}

static int64_t load_int(const void *at, size_t size)
{
	const unsigned shift = 64 - 8 * (unsigned)size;
	return (int64_t)(load_uint(at, size) << shift) >> shift;
}

/* ---- nested records: the length comes first, but is known last */

enum { GUESS = 1 };

static size_t open_bytes(struct dp_file_encoder *e, unsigned number)
{
	put_key(e, number, DP_WIRE_BYTES);
	dp_buf_grow(e->to, GUESS);
	return e->to->len - GUESS;
}

static void close_bytes(struct dp_file_encoder *e, size_t begin)
{
	dp_file_close(e->to, begin, GUESS);
}

void dp_file_close(struct dp_buf *to, size_t begin, size_t guess)
{
	uint8_t length[DP_VARINT_MAX];
	const size_t n = to->len - begin - guess, size = (size_t)(dp_file_varint(length, n) - length);
	if (!dp_file_room(to, DP_VARINT_MAX))
		return;
	if (size != guess)
		memmove(to->data + begin + size, to->data + begin + guess, n);
	memcpy(to->data + begin, length, size);
	to->len = begin + size + n;
}

/* ---- texts */

static void put_text(struct dp_file_encoder *e, unsigned number, const char *text)
{
	dp_file_put_number(e, number, dp_file_text(e->strings, text));
}

static void put_texts(struct dp_file_encoder *e, unsigned number, const char *const *text)
{
	for (size_t i = 0; text[i]; i++)
		put_text(e, number, text[i]);
}

static void put_words(struct dp_file_encoder *e, unsigned number, const struct dp_snap_word *list)
{
	const struct dp_snap_word *w;
	DL_FOREACH(list, w)
	put_text(e, number, w->text);
}

static void put_string(struct dp_file_encoder *e, unsigned number, const struct dp_snap_variable *v)
{
	if (v->text && v->is_string)
		dp_file_put_number(e, number, dp_file_string(e->strings, v->text, v->text_size));
	else if (v->text)
		put_text(e, number, v->text);
}

/* ---- lists, arrays */

static const void *next_of(const void *obj)
{
	return dp_file_load(obj, offsetof(struct dp_snap_note, next));
}

/* `next` is the second member of all list elements. */
_Static_assert(offsetof(struct dp_snap_note, next) == offsetof(struct dp_snap_variable, next) &&
                       offsetof(struct dp_snap_note, next) == offsetof(struct dp_snap_frame, next) &&
                       offsetof(struct dp_snap_note, next) == offsetof(struct dp_snap_thread, next) &&
                       offsetof(struct dp_snap_note, next) == offsetof(struct dp_snap_kframe, next) &&
                       offsetof(struct dp_snap_note, next) == offsetof(struct dp_snap_pair, next),
               "lists");

static void put_record(struct dp_file_encoder *e, unsigned number, const struct dp_store_record *r, const void *obj)
{
	const size_t begin = open_bytes(e, number);
	encode(e, r, obj);
	close_bytes(e, begin);
}

static void put_element(struct dp_file_encoder *e, const struct dp_store_row *row, const void *obj)
{
	e->level++;
	put_record(e, row->number, row->of, obj);
	if (!--e->level && e->drain)
		e->drain(e);
}

static void put_list(struct dp_file_encoder *e, const struct dp_store_row *row, const void *head)
{
	if (row->of == &dp_store_variable && !e->by_table) {
		dp_file_put_variables(e, row->number, head);
		return;
	}
	for (const void *obj = head; obj; obj = next_of(obj))
		put_element(e, row, obj);
}

void dp_file_put_notes(struct dp_file_encoder *e, unsigned number, const struct dp_snap_note *list)
{
	for (const struct dp_snap_note *n = list; n; n = n->next)
		put_record(e, number, &dp_store_note, n);
}

static void put_array(struct dp_file_encoder *e, const struct dp_store_row *row, const void *obj)
{
	const char *first = dp_file_load(obj, row->offset);
	const uint64_t n = first ? load_uint((const char *)obj + row->count, 8) : 0;
	for (uint64_t i = 0; i < n; i++)
		put_element(e, row, first + i * row->of->size);
}

/* ---- special cases */

static void put_registers(struct dp_file_encoder *e, unsigned number, const struct dp_frame_regs *r)
{
	if (!r->known)
		return;
	const size_t begin = open_bytes(e, number);
	for (unsigned i = 0; i < DP_DWARF_REGS; i++)
		if (r->known >> i & 1) {
			put_key(e, i + 1, DP_WIRE_8);
			dp_buf_put(e->to, &r->value[i], 8);
		}
	close_bytes(e, begin);
}

/* An empty record means: the same registers as the previous frame. */
static void put_frame_registers(struct dp_file_encoder *e, unsigned number, const struct dp_snap_frame *f)
{
	if (!f->registers)
		return;
	if (f->thread && f != f->thread->frames && f->prev->registers == f->registers)
		close_bytes(e, open_bytes(e, number));
	else
		put_registers(e, number, f->registers);
}

static void put_blob(struct dp_file_encoder *e, const struct dp_store_row *row, const void *obj)
{
	const uint64_t n = load_uint((const char *)obj + row->count, 8);
	if (!n || !dp_file_load(obj, row->offset))
		return;
	put_key(e, row->number, DP_WIRE_BYTES);
	put_varint(e->to, n);
	dp_buf_put(e->to, dp_file_load(obj, row->offset), n);
}

static void put_real(struct dp_file_encoder *e, unsigned number, const void *at)
{
	if (!load_uint(at, 8))
		return;
	put_key(e, number, DP_WIRE_8);
	dp_buf_put(e->to, at, 8);
}

static void put_int(struct dp_file_encoder *e, const struct dp_store_row *row, int64_t v)
{
	if (v != row->usual)
		dp_file_put_number(e, row->number, (uint64_t)v << 1 ^ (uint64_t)(v >> 63));
}

static void put_plain(struct dp_file_encoder *e, const struct dp_store_row *row, const void *at)
{
	const uint64_t v = load_uint(at, row->size);
	if (v != (row->keep == DP_STORE_CHAR ? (uint8_t)row->usual : 0))
		dp_file_put_number(e, row->number, v);
}

static void put_row_text(struct dp_file_encoder *e, const struct dp_store_row *row, const void *obj)
{
	const char *text = row->keep == DP_STORE_ID ? (const char *)obj + row->offset : dp_file_load(obj, row->offset);
	if (text && (*text || row->keep == DP_STORE_TEXT_OR_NULL))
		put_text(e, row->number, text);
}

/* Number 0 is no text; it marks a list that is empty, not NULL. */
static void put_row_texts(struct dp_file_encoder *e, const struct dp_store_row *row, const void *obj)
{
	const char *const *text = dp_file_load(obj, row->offset);
	if (!text)
		return;
	if (row->keep == DP_STORE_TEXTS_OR_NULL)
		dp_file_put_number(e, row->number, 0);
	put_texts(e, row->number, text);
}

static void put_row(struct dp_file_encoder *e, const struct dp_store_row *row, const void *obj)
{
	const void *at = (const char *)obj + row->offset;
	switch ((enum dp_store_kind)row->keep) {
	case DP_STORE_INT:
		put_int(e, row, load_int(at, row->size));
		return;
	case DP_STORE_UINT:
	case DP_STORE_HEX:
	case DP_STORE_NUMBER:
	case DP_STORE_BOOL:
	case DP_STORE_CHAR:
	case DP_STORE_ENUM:
		put_plain(e, row, at);
		return;
	case DP_STORE_REAL:
		put_real(e, row->number, at);
		return;
	case DP_STORE_TEXT:
	case DP_STORE_TEXT_OR_NULL:
	case DP_STORE_ID:
		put_row_text(e, row, obj);
		return;
	case DP_STORE_STRING:
		put_string(e, row->number, obj);
		return;
	case DP_STORE_TEXTS:
	case DP_STORE_TEXTS_OR_NULL:
		put_row_texts(e, row, obj);
		return;
	case DP_STORE_WORDS:
		put_words(e, row->number, dp_file_load(obj, row->offset));
		return;
	case DP_STORE_LIST:
		put_list(e, row, dp_file_load(obj, row->offset));
		return;
	case DP_STORE_ARRAY:
		put_array(e, row, obj);
		return;
	case DP_STORE_SUB:
		if (dp_file_load(obj, row->offset))
			put_record(e, row->number, row->of, dp_file_load(obj, row->offset));
		return;
	case DP_STORE_REGISTERS:
		put_registers(e, row->number, at);
		return;
	case DP_STORE_FRAME_REGISTERS:
		put_frame_registers(e, row->number, obj);
		return;
	case DP_STORE_BLOB:
		put_blob(e, row, obj);
		return;
	}
}

/* Most members are 0, false or NULL and are omitted, unless another value is usual. */
static bool is_nothing(const struct dp_store_row *row, const void *obj)
{
	if (row->usual || (row->size != 1 && row->size != 4 && row->size != 8))
		return false;
	return !load_uint((const char *)obj + row->offset, row->size);
}

static void encode(struct dp_file_encoder *e, const struct dp_store_record *r, const void *obj)
{
	for (size_t i = 0; i < r->n && !e->to->failed; i++)
		if (!is_nothing(&r->row[i], obj))
			put_row(e, &r->row[i], obj);
}

void dp_file_encode(struct dp_file_encoder *e, const struct dp_snapshot *s, uint8_t first, uint8_t last)
{
	for (size_t i = 0; i < dp_store_snapshot.n && !e->to->failed; i++) {
		const struct dp_store_row *row = &dp_store_snapshot.row[i];
		if (row->number >= first && row->number <= last)
			put_row(e, row, s);
	}
}
