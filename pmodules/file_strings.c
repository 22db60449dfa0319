/* SPDX-License-Identifier: MIT */
/*
 * Every text once: the file's strings, numbered as they are met. A snapshot asks for a text half a million times and has a few
 * thousand of them, so a question should cost no more than a look: names and types are interned by the snapshot, the same pointer
 * is the same text; strings of the program are looked for by their bytes, in one table without pointers.
 */
#include "pmodules/file_internal.h"
#include "pmodules/text_hash.h"

#include <stdlib.h>

enum { CACHE = 4096, FIRST = 4096 };

struct item {
	size_t at; /* in `bytes` */
	size_t n;
};

struct slot {
	uint32_t hash, number; /* 0: nothing is here */
};

struct dp_file_strings {
	struct dp_buf bytes;
	struct item *item;
	struct slot *slot;
	uint32_t n, nslots; /* a power of two, never more than half full */
	struct {
		const char *text;
		uint32_t number;
	} cache[CACHE];
};

struct dp_file_strings *dp_file_strings_create(void)
{
	struct dp_file_strings *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->nslots = FIRST;
	t->slot = calloc(t->nslots, sizeof(*t->slot));
	t->item = calloc(t->nslots / 2, sizeof(*t->item));
	return t->slot && t->item ? t : dp_file_strings_destroy(t);
}

struct dp_file_strings *dp_file_strings_destroy(struct dp_file_strings *t)
{
	if (!t)
		return NULL;
	dp_buf_fini(&t->bytes);
	free(t->slot);
	free(t->item);
	free(t);
	return NULL;
}

/* Where that text is, or the empty place where it belongs. */
static inline bool is_same(const uint8_t *a, const char *b, size_t n)
{
	uint64_t v, w;
	for (; n >= 8; a += 8, b += 8, n -= 8) {
		memcpy(&v, a, 8);
		memcpy(&w, b, 8);
		if (v != w)
			return false;
	}
	while (n && *a == (uint8_t)*b)
		a++, b++, n--;
	return !n;
}

static struct slot *slot_of(const struct dp_file_strings *t, uint32_t hash, const char *text, size_t n)
{
	const uint32_t mask = t->nslots - 1;
	for (uint32_t i = hash & mask;; i = (i + 1) & mask) {
		struct slot *s = &t->slot[i];
		if (!s->number)
			return s;
		const struct item *it = &t->item[s->number - 1];
		if (s->hash == hash && it->n == n && is_same(t->bytes.data + it->at, text, n))
			return s;
	}
}

static bool grow(struct dp_file_strings *t)
{
	const uint32_t old = t->nslots;
	struct slot *from = t->slot, *to = calloc(old * 2u, sizeof(*to));
	struct item *item = to ? reallocarray(t->item, old, sizeof(*item)) : NULL;
	if (!item) {
		free(to);
		return false;
	}
	t->item = item;
	t->slot = to;
	t->nslots = old * 2;
	for (uint32_t i = 0; i < old; i++) {
		uint32_t at = from[i].hash & (t->nslots - 1);
		while (to[at].number && from[i].number)
			at = (at + 1) & (t->nslots - 1);
		if (from[i].number)
			to[at] = from[i];
	}
	free(from);
	return true;
}

/* As a field of the section: repeated bytes text = 1. */
static uint32_t append(struct dp_file_strings *t, const char *text, size_t n)
{
	uint8_t head[1 + DP_VARINT_MAX] = {1 << 3 | DP_WIRE_BYTES};
	dp_buf_put(&t->bytes, head, (size_t)(dp_file_varint(head + 1, n) - head));
	const struct item it = {t->bytes.len, n};
	dp_buf_put(&t->bytes, text, n);
	if (t->bytes.failed)
		return 0;
	t->item[t->n++] = it;
	return t->n;
}

uint32_t dp_file_string(struct dp_file_strings *t, const char *text, size_t n)
{
	const uint32_t hash = dp_text_hash(text, n);
	const struct slot *s = slot_of(t, hash, text, n);
	if (s->number)
		return s->number;
	if (t->n >= DP_FILE_STRINGS_MAX || (t->n == t->nslots / 2 && !grow(t)))
		t->bytes.failed = true;
	if (t->bytes.failed)
		return 0;
	const uint32_t number = append(t, text, n);
	if (number)
		*slot_of(t, hash, text, n) = (struct slot){hash, number};
	return number;
}

uint32_t dp_file_text(struct dp_file_strings *t, const char *text)
{
	const size_t at = ((uintptr_t)text >> 4 ^ (uintptr_t)text >> 16) % CACHE;
	if (t->cache[at].text != text) {
		t->cache[at].number = dp_file_string(t, text, strlen(text));
		t->cache[at].text = text;
	}
	return t->cache[at].number;
}

struct dp_buf *dp_file_strings_bytes(struct dp_file_strings *t)
{
	return &t->bytes;
}
