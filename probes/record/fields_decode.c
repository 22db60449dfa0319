/* SPDX-License-Identifier: MIT */
/*
 * Decodes payloads. The target can write to these bytes at any time, so every length is checked against what is left, and a
 * string's NUL is searched only within its limit.
 */
#include "agent/abi.h"
#include "probes/record/fields_internal.h"

#include <string.h>

typedef void each_fn(const struct dp_field *field, const struct dp_field_value *value, void *data);

struct cursor {
	const uint8_t *at;
	size_t left;
};

static const uint8_t *take(struct cursor *c, size_t n)
{
	const uint8_t *bytes = c->at;
	if (n > c->left)
		return NULL;
	c->at += n;
	c->left -= n;
	return bytes;
}

/* Little-endian; `n` is 1, 2, 4 or 8. */
static uint64_t load(const uint8_t *bytes, size_t n)
{
	uint64_t u = 0;
	if (n == sizeof(u)) /* the most common; with a constant size it is a plain load */
		memcpy(&u, bytes, sizeof(u));
	else if (n == sizeof(uint32_t))
		memcpy(&u, bytes, sizeof(uint32_t));
	else
		memcpy(&u, bytes, n);
	return u;
}

static double as_double(uint64_t bits, uint32_t size)
{
	double wide = 0;
	float narrow = 0;
	if (size == sizeof(narrow)) {
		memcpy(&narrow, &bits, sizeof(narrow));
		return (double)narrow;
	}
	memcpy(&wide, &bits, sizeof(wide));
	return wide;
}

static bool decode_number(const struct dp_field *f, struct cursor *c, struct dp_field_value *v)
{
	const uint8_t *bytes = f->size <= sizeof(uint64_t) ? take(c, f->size) : NULL;
	if (!bytes)
		return false;
	unsigned unused = 64u - 8u * f->size;
	v->u = load(bytes, f->size);
	if (f->type == DP_TYPE_INT && f->size)
		v->u = (uint64_t)((int64_t)(v->u << unused) >> unused);
	if (f->type == DP_TYPE_FLOAT)
		v->f = as_double(v->u, f->size);
	return true;
}

static bool decode_string(const struct dp_field *f, struct cursor *c, struct dp_field_value *v)
{
	size_t limit = f->size < c->left ? f->size : c->left;
	const uint8_t *nul = limit ? memchr(c->at, '\0', limit) : NULL;
	if (!nul)
		return false;
	v->n = (size_t)(nul - c->at);
	v->bytes = take(c, v->n + 1);
	v->is_null = v->unreadable && v->n;
	return true;
}

static bool decode_backtrace(const struct dp_field *f, struct cursor *c, struct dp_field_value *v)
{
	const uint8_t *n = take(c, 1);
	if (!n || *n > f->size)
		return false;
	v->n = *n;
	v->bytes = take(c, v->n * sizeof(uint64_t));
	return v->bytes;
}

static bool decode_field(const struct dp_field *f, struct cursor *c, struct dp_field_value *v)
{
	switch (f->type) {
	case DP_TYPE_INT:
	case DP_TYPE_UINT:
	case DP_TYPE_FLOAT:
	case DP_TYPE_POINTER:
		return decode_number(f, c, v);
	case DP_TYPE_STRING:
		return decode_string(f, c, v);
	case DP_TYPE_BYTES:
		v->n = f->size;
		v->bytes = take(c, f->size);
		return v->bytes;
	case DP_TYPE_BACKTRACE:
		return decode_backtrace(f, c, v);
	}
	return false;
}

static bool walk(const struct dp_decoder *d, struct cursor *c, each_fn *each, void *data)
{
	uint64_t mask = 0;
	if (d->masked) {
		const uint8_t *bytes = take(c, DP_MASK_BYTES);
		if (!bytes)
			return false;
		mask = load(bytes, DP_MASK_BYTES) & d->may_fault;
	}
	for (size_t i = 0; i < d->fields->n; i++) {
		const struct dp_field *f = &d->fields->field[i];
		struct dp_field_value v = {.unreadable = i < 64 && (mask >> i & 1)};
		if (!decode_field(f, c, &v))
			return false;
		if (each)
			each(f, &v, data);
	}
	return true;
}

static bool varies(const struct dp_field *f)
{
	return f->type == DP_TYPE_STRING || f->type == DP_TYPE_BACKTRACE ||
	       (f->type != DP_TYPE_BYTES && f->size > sizeof(uint64_t));
}

void dp_decoder_init(struct dp_decoder *d, const struct dp_fields *fields)
{
	*d = (struct dp_decoder){.fields = fields};
	for (size_t i = 0; i < fields->n; i++) {
		const struct dp_field *f = &fields->field[i];
		const bool may_fault = dp_field_may_fault(f);
		d->masked |= may_fault;
		d->may_fault |= i < 64 ? (uint64_t)may_fault << i : 0;
		d->fixed = varies(f) || d->fixed == SIZE_MAX ? SIZE_MAX : d->fixed + f->size;
	}
	if (d->masked && d->fixed != SIZE_MAX)
		d->fixed += DP_MASK_BYTES;
}

bool dp_decoder_run(const struct dp_decoder *d, const uint8_t *payload, size_t len, each_fn *each, void *data)
{
	struct cursor c = {payload, len};
	return walk(d, &c, each, data);
}

size_t dp_decoder_length(const struct dp_decoder *d, const uint8_t *payload, size_t len)
{
	struct cursor c = {payload, len};
	if (d->fixed != SIZE_MAX)
		return d->fixed <= len ? d->fixed : SIZE_MAX;
	return walk(d, &c, NULL, NULL) ? len - c.left : SIZE_MAX;
}

bool dp_fields_decode(const struct dp_fields *fields, const uint8_t *payload, size_t len, each_fn *each, void *data)
{
	struct dp_decoder d;
	dp_decoder_init(&d, fields);
	return dp_decoder_run(&d, payload, len, each, data);
}

size_t dp_fields_payload_length(const struct dp_fields *fields, const uint8_t *payload, size_t len)
{
	struct dp_decoder d;
	dp_decoder_init(&d, fields);
	return dp_decoder_length(&d, payload, len);
}
