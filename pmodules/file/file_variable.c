/* SPDX-License-Identifier: MIT */
/*
 * Encodes variables. A snapshot has a hundred times more variables than everything else together, so there is no table walk: room
 * is made once, members are written in the order of their numbers, and members that are mostly 0 are tested together. The bytes
 * are the same as by the table; a test compares them. By the table, writing a snapshot takes twice as long (compression
 * included).
 */
#include "pmodules/file/file_variable.h"
#include "pmodules/file/file_internal.h"

#include <utlist.h>

/* A key has at most two bytes, a value ten. */
enum { ROOM = (DP_FIELD_CHILDREN + 1) * (2 + DP_VARINT_MAX) };

static inline uint8_t *put_key(uint8_t *p, unsigned number, enum dp_wire wire)
{
	return dp_file_varint(p, number << 3 | wire);
}

static inline uint8_t *put_number(uint8_t *p, unsigned number, uint64_t v)
{
	return v ? dp_file_varint(put_key(p, number, DP_WIRE_VARINT), v) : p;
}

static inline uint8_t *put_text(struct dp_file_encoder *e, uint8_t *p, unsigned number, const char *text)
{
	return dp_file_varint(put_key(p, number, DP_WIRE_VARINT), dp_file_text(e->strings, text));
}

static inline uint8_t *put_real(uint8_t *p, unsigned number, const double *v)
{
	uint64_t bits;
	memcpy(&bits, v, sizeof(bits));
	if (!bits)
		return p;
	p = put_key(p, number, DP_WIRE_8);
	memcpy(p, &bits, sizeof(bits));
	return p + sizeof(bits);
}

/* NAME .. PLACE */
static uint8_t *put_type(struct dp_file_encoder *e, uint8_t *p, const struct dp_snap_variable *v)
{
	if (*v->name)
		p = put_text(e, p, DP_FIELD_NAME, v->name);
	if (*v->type)
		p = put_text(e, p, DP_FIELD_TYPE, v->type);
	if (*v->base_type)
		p = put_text(e, p, DP_FIELD_BASE_TYPE, v->base_type);
	p = put_number(p, DP_FIELD_KIND, v->kind);
	p = put_number(p, DP_FIELD_STATE, v->state);
	return put_number(p, DP_FIELD_PLACE, v->place);
}

/* WHY .. TEXT */
static uint8_t *put_value(struct dp_file_encoder *e, uint8_t *p, const struct dp_snap_variable *v)
{
	if (v->why)
		p = put_text(e, p, DP_FIELD_WHY, v->why);
	if (v->index != -1)
		p = dp_file_varint(put_key(p, DP_FIELD_INDEX, DP_WIRE_VARINT),
		                   (uint64_t)v->index << 1 ^ (uint64_t)(v->index >> 63));
	p = put_number(p, DP_FIELD_ADDRESS, v->address);
	p = put_number(p, DP_FIELD_SIZE, v->size);
	p = put_number(p, DP_FIELD_NUMBER, v->number);
	p = put_real(p, DP_FIELD_REAL, &v->real);
	p = put_real(p, DP_FIELD_IMAGINARY, &v->imaginary);
	p = put_number(p, DP_FIELD_IS_STRING, v->is_string);
	if (v->text && v->is_string)
		p = dp_file_varint(put_key(p, DP_FIELD_TEXT, DP_WIRE_VARINT), dp_file_string(e->strings, v->text, v->text_size));
	else if (v->text)
		p = put_text(e, p, DP_FIELD_TEXT, v->text);
	return p;
}

/* IS_CUT .. UNIT */
static uint8_t *put_rare(struct dp_file_encoder *e, uint8_t *p, const struct dp_snap_variable *v)
{
	const uint8_t *flag = (const uint8_t *)v + DP_FLAGS_AT;
	uint64_t flags;
	memcpy(&flags, flag, sizeof(flags));
	for (unsigned i = 0; flags && i < DP_FLAGS; i++)
		p = put_number(p, DP_FIELD_IS_CUT + i, flag[i]);
	p = put_number(p, DP_FIELD_BITS, v->bits);
	if (v->summary)
		p = put_text(e, p, DP_FIELD_SUMMARY, v->summary);
	if (*v->object)
		p = put_text(e, p, DP_FIELD_OBJECT, v->object);
	if (*v->unit)
		p = put_text(e, p, DP_FIELD_UNIT, v->unit);
	return p;
}

/* Children below the depth limit are counted. */
static uint64_t more_of(const struct dp_file_encoder *e, const struct dp_snap_variable *v)
{
	const struct dp_snap_variable *child;
	uint64_t n = v->more;
	if (e->depth == DP_STORE_DEPTH)
		DL_FOREACH(v->children, child)
	n++;
	return n;
}

/* The length's size: with children a variable usually has more than 128 bytes, without it has fewer. */
static void put_variable(struct dp_file_encoder *e, unsigned number, const struct dp_snap_variable *v)
{
	const size_t guess = v->children ? 2 : 1;
	uint8_t *p = dp_file_room(e->to, ROOM);
	if (!p)
		return;
	p = put_key(p, number, DP_WIRE_BYTES);
	const size_t begin = (size_t)(p - e->to->data);
	p = put_rare(e, put_value(e, put_type(e, p + guess, v), v), v);
	e->to->len = (size_t)(p - e->to->data);
	dp_file_put_notes(e, DP_FIELD_NOTES, v->notes);
	const uint64_t more = more_of(e, v);
	if (more)
		dp_file_put_number(e, DP_FIELD_MORE, more);
	if (v->children && e->depth < DP_STORE_DEPTH)
		dp_file_put_variables(e, DP_FIELD_CHILDREN, v->children);
	if (v->module)
		dp_file_put_number(e, DP_FIELD_MODULE, dp_file_text(e->strings, v->module));
	dp_file_close(e->to, begin, guess);
}

/* Variables far exceed the processor's caches: prefetch the next while this one is written. */
static inline void fetch(const struct dp_snap_variable *v)
{
	for (size_t at = 0; v && at < sizeof(*v); at += 64)
		__builtin_prefetch((const char *)v + at);
}

void dp_file_put_variables(struct dp_file_encoder *e, unsigned number, const struct dp_snap_variable *list)
{
	const struct dp_snap_variable *v;
	e->depth++;
	DL_FOREACH(list, v)
	{
		fetch(v->children);
		fetch(v->next);
		put_variable(e, number, v);
	}
	e->depth--;
}
