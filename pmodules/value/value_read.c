/* SPDX-License-Identifier: MIT */
/* Reads values: bytes, numbers, strings. */
#include "pmodules/value/debug_ctx_internal.h"

#include <math.h>
#include <string.h>

static const char *const unreadable = "its memory cannot be read";

bool dp_value_fetch(struct dp_value *v, void *buf, size_t n, const char **why)
{
	if (v->where == DP_VALUE_MEMORY) {
		const uint8_t *bytes = dp_debug_ctx_at(v->w, v->addr, n, &v->late);
		*why = unreadable;
		if (!bytes)
			return dp_debug_ctx_get(v->w, v->addr, buf, n, &v->late);
		memcpy(buf, bytes, n);
		return true;
	}
	*why = v->where == DP_VALUE_NOWHERE && v->why ? v->why : DP_WHY_OPTIMIZED;
	if (v->where != DP_VALUE_BYTES || n > v->nbytes)
		return false;
	for (size_t i = 0; v->valid && i < n; i++)
		if (!v->valid[i])
			return false;
	memcpy(buf, v->bytes, n);
	return true;
}

static uint64_t extend(uint64_t v, unsigned bits, bool is_signed)
{
	const unsigned unused = bits >= 64 ? 0 : 64 - bits;
	return is_signed ? (uint64_t)((int64_t)(v << unused) >> unused) : v << unused >> unused;
}

static bool bit_field(struct dp_value *v, uint64_t *ret, const char **why)
{
	unsigned __int128 u = 0;
	const size_t n = (v->bit + (size_t)v->bits + 7) / 8;
	if (v->bits > 64 || v->bit > 7 || !dp_value_fetch(v, &u, n, why))
		return false;
	*ret = extend((uint64_t)(u >> v->bit), v->bits, v->type->is_signed);
	return true;
}

bool dp_value_scalar(struct dp_value *v, uint64_t *ret, const char **why)
{
	uint64_t u = 0;
	const uint64_t size = v->type->size;
	if (v->bits)
		return bit_field(v, ret, why);
	*why = "it is not a number";
	if (size == 8 && v->where == DP_VALUE_MEMORY) { /* mostly pointers */
		const uint8_t *bytes = dp_debug_ctx_at(v->w, v->addr, sizeof(u), &v->late);
		if (bytes) {
			memcpy(ret, bytes, sizeof(*ret));
			return true;
		}
	}
	if (!size || size > 8 || !dp_value_fetch(v, &u, size, why))
		return false;
	*ret = extend(u, (unsigned)size * 8, v->type->is_signed);
	return true;
}

static struct dp_error *refused(struct dp_value *v, const char *why)
{
	return dp_error(DP_TAG_NO_VALUE, "'%s' (%s at 0x%llx) has no value: %s", dp_value_name(v), v->type->text,
	                (unsigned long long)v->addr, why);
}

struct dp_error *dp_value_read_int(struct dp_value *v, uint64_t *ret)
{
	const char *why = "it is not a number";
	switch (v->type->kind) {
	case DP_CTYPE_INT:
	case DP_CTYPE_INT128:
	case DP_CTYPE_POINTER:
		return dp_value_scalar(v, ret, &why) ? NULL : refused(v, why);
	default:
		return refused(v, why);
	}
}

struct dp_error *dp_value_read_real(struct dp_value *v, double *ret)
{
	const char *why = "it is not a real number";
	uint64_t n = 0;
	float f;
	long double ld = 0;
	switch (v->type->kind) {
	case DP_CTYPE_FLOAT:
	case DP_CTYPE_LONG_DOUBLE:
	case DP_CTYPE_COMPLEX:
		break;
	default:
		DP_TRY(dp_value_read_int(v, &n));
		*ret = v->type->is_signed ? (double)(int64_t)n : (double)n;
		return NULL;
	}
	const uint64_t size = v->type->kind == DP_CTYPE_COMPLEX ? v->type->size / 2 : v->type->size;
	if (size == 4 && dp_value_fetch(v, &f, 4, &why))
		*ret = (double)f;
	else if (size == 16 && dp_value_fetch(v, &ld, 10, &why))
		*ret = (double)ld;
	else if (size != 8 || !dp_value_fetch(v, ret, 8, &why))
		return refused(v, why);
	return NULL;
}

size_t dp_value_read_bytes(struct dp_value *v, void *buf, size_t n)
{
	const uint64_t size = dp_value_size(v);
	const char *why;
	n = size && size < n ? (size_t)size : n;
	if (v->where == DP_VALUE_MEMORY)
		return dp_debug_ctx_read(v->w, v->addr, buf, n, &v->late);
	n = n < v->nbytes ? n : (size_t)v->nbytes;
	return v->where == DP_VALUE_BYTES && dp_value_fetch(v, buf, n, &why) ? n : 0;
}

static ssize_t string_at(struct dp_debug_ctx *w, uint64_t addr, char *buf, size_t n)
{
	const size_t got = dp_debug_ctx_read(w, addr, buf, n, NULL);
	const char *nul = memchr(buf, 0, got);
	const size_t length = nul ? (size_t)(nul - buf) : got;
	if (!got && n)
		return -1;
	buf[length] = 0;
	return (ssize_t)length;
}

ssize_t dp_value_read_string(struct dp_value *v, char *buf, size_t n)
{
	uint64_t addr;
	const char *why;
	*buf = 0;
	if (v->type->kind == DP_CTYPE_POINTER && !v->type->is_reference)
		return dp_value_scalar(v, &addr, &why) && addr ? string_at(v->w, addr, buf, n) : -1;
	if (v->type->kind != DP_CTYPE_ARRAY)
		return -1;
	if (v->type->size && v->type->size < n)
		n = (size_t)v->type->size;
	if (v->where == DP_VALUE_MEMORY)
		return string_at(v->w, v->addr, buf, n);
	if (v->where != DP_VALUE_BYTES || n > v->nbytes || !dp_value_fetch(v, buf, n, &why))
		return -1;
	buf[n] = 0;
	return (ssize_t)strlen(buf);
}
