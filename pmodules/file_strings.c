/* SPDX-License-Identifier: MIT */
/* Every text once: the file's strings, numbered as they are met. */
#include "pmodules/file_internal.h"
#include "pmodules/text_hash.h"

#include <stdlib.h>

enum { CACHE = 4096 };

struct entry {
	UT_hash_handle hh;
	const char *text; /* the snapshot's */
	uint32_t number;
};

struct dp_file_strings {
	struct entry *table;
	struct dp_arena arena;
	struct dp_buf bytes;
	uint32_t n;
	/* Most texts are interned by the snapshot: the same pointer is the same text. */
	struct {
		const char *text;
		size_t n;
		uint32_t number;
	} cache[CACHE];
};

struct dp_file_strings *dp_file_strings_create(void)
{
	return calloc(1, sizeof(struct dp_file_strings));
}

struct dp_file_strings *dp_file_strings_destroy(struct dp_file_strings *t)
{
	if (!t)
		return NULL;
	HASH_CLEAR(hh, t->table);
	dp_arena_fini(&t->arena);
	dp_buf_fini(&t->bytes);
	free(t);
	return NULL;
}

/* As a field of the section: repeated bytes text = 1. */
static void append(struct dp_file_strings *t, const char *text, size_t n)
{
	uint8_t head[11] = {1 << 3 | DP_WIRE_BYTES};
	size_t len = 1;
	for (uint64_t v = n;; v >>= 7) {
		head[len++] = (uint8_t)(v >= 0x80 ? v | 0x80 : v);
		if (v < 0x80)
			break;
	}
	dp_buf_put(&t->bytes, head, len);
	dp_buf_put(&t->bytes, text, n);
}

static uint32_t look_up(struct dp_file_strings *t, const char *text, size_t n)
{
	struct entry *e;
	HASH_FIND(hh, t->table, text, n, e);
	if (e)
		return e->number;
	e = t->n < DP_FILE_STRINGS_MAX ? dp_arena_alloc(&t->arena, sizeof(*e)) : NULL;
	if (!e) {
		t->bytes.failed = true;
		return 0;
	}
	e->text = text;
	e->number = ++t->n;
	HASH_ADD_KEYPTR(hh, t->table, e->text, n, e);
	append(t, text, n);
	return e->number;
}

uint32_t dp_file_string(struct dp_file_strings *t, const char *text, size_t n)
{
	const size_t slot = ((uintptr_t)text >> 4 ^ (uintptr_t)text >> 16) % CACHE;
	if (t->cache[slot].text != text || t->cache[slot].n != n) {
		t->cache[slot].number = look_up(t, text, n);
		t->cache[slot].text = text;
		t->cache[slot].n = n;
	}
	return t->cache[slot].number;
}

struct dp_buf *dp_file_strings_bytes(struct dp_file_strings *t)
{
	return &t->bytes;
}
