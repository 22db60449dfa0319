/* SPDX-License-Identifier: MIT */
/* Structs that are strings with a length: std::string, {data, len}, Rust's and Go's. Their members are kept beside the text. */
#include "pmodules/value/value_show.h"
#include "probes/dwarf/type_counted.h"

#include <string.h>

/* Larger records are no strings, and lengths above are those of variables that are not set yet. */
enum { RECORD_MAX = 64, TEXT_MAX = 65536 };
#define LENGTH_MAX (UINT64_C(1) << 40)

static bool find(struct dp_value *v, const struct dp_counted *c, uint64_t *addr, uint64_t *n)
{
	uint8_t bytes[RECORD_MAX];
	const char *why = NULL;
	const uint64_t size = v->type->size;
	if (size > sizeof(bytes) || c->data + sizeof(*addr) > size || c->length + c->size > size ||
	    !dp_value_fetch(v, bytes, size, &why))
		return false;
	*n = 0;
	memcpy(addr, bytes + c->data, sizeof(*addr));
	memcpy(n, bytes + c->length, c->size);
	if (c->is_signed && c->size == sizeof(int32_t))
		*n = (uint64_t)(int64_t)(int32_t)*n;
	return *n < LENGTH_MAX;
}

void dp_show_counted(struct dp_show *x, struct dp_value *v, struct dp_snap_variable *into)
{
	static char buf[TEXT_MAX];
	struct dp_counted c;
	uint64_t addr, n;
	bool late = false;
	if (!dp_ctype_counted(v->type, &c) || !find(v, &c, &addr, &n))
		return;
	const size_t size = n < x->limits.string ? (size_t)n : x->limits.string;
	if (size && dp_debug_ctx_read(x->w, addr, buf, size, &late) < size)
		return;
	const char *text = dp_arena_copy(&x->s->arena, buf, size);
	if (!text)
		return;
	into->is_string = true;
	into->is_late |= late;
	into->is_cut = size < n;
	into->text_size = size;
	into->text = text;
}
