/* SPDX-License-Identifier: MIT */
/*
 * The file's string table: each text once, numbered in order of first use. A snapshot asks for a text half a million times and
 * has a few thousand of them, so lookups must be cheap. Names and types are interned: the same pointer is the same text, and is
 * cached. Strings of the program are looked up by their bytes, in one table without pointers.
 */
#include "base/text_hash.h"
#include "pmodules/file/file_internal.h"

#include <stdlib.h>

enum { CACHE = 4096, FIRST = 4096 };

struct slot {
	uint64_t key;          /* key_of() */
	uint32_t hash, number; /* number 0: the slot is empty */
};

struct dp_file_strings {
	struct dp_buf bytes;
	size_t *at; /* offset of each text in `bytes` */
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
	t->at = calloc(t->nslots / 2, sizeof(*t->at));
	return t->slot && t->at ? t : dp_file_strings_destroy(t);
}

struct dp_file_strings *dp_file_strings_destroy(struct dp_file_strings *t)
{
	if (!t)
		return NULL;
	dp_buf_fini(&t->bytes);
	free(t->slot);
	free(t->at);
	free(t);
	return NULL;
}

/* A short text, as most are, is its own key and needs no comparison of bytes. A long one's key has its length. */
enum { SHORT = 8 };
static uint64_t key_of(const char *text, size_t n)
{
	return n < SHORT ? dp_text_tail(text, n) | (uint64_t)n << 56 : (uint64_t)SHORT << 56 | n;
}

/* The text's slot, or the empty slot where it belongs. */
static struct slot *slot_of(const struct dp_file_strings *t, uint32_t hash, const char *text, size_t n)
{
	const uint32_t mask = t->nslots - 1;
	const uint64_t key = key_of(text, n);
	for (uint32_t i = hash & mask;; i = (i + 1) & mask) {
		struct slot *s = &t->slot[i];
		if (!s->number)
			return s;
		if (s->hash == hash && s->key == key && (n < SHORT || !memcmp(t->bytes.data + t->at[s->number - 1], text, n)))
			return s;
	}
}

static bool grow(struct dp_file_strings *t)
{
	const uint32_t old = t->nslots;
	struct slot *from = t->slot, *to = calloc(old * 2u, sizeof(*to));
	size_t *at = to ? reallocarray(t->at, old, sizeof(*at)) : NULL;
	if (!at) {
		free(to);
		return false;
	}
	t->at = at;
	t->slot = to;
	t->nslots = old * 2;
	for (uint32_t i = 0; i < old; i++) {
		uint32_t k = from[i].hash & (t->nslots - 1);
		while (to[k].number && from[i].number)
			k = (k + 1) & (t->nslots - 1);
		if (from[i].number)
			to[k] = from[i];
	}
	free(from);
	return true;
}

/* Appends a field of the section: repeated bytes text = 1. */
static uint32_t append(struct dp_file_strings *t, const char *text, size_t n)
{
	uint8_t head[1 + DP_VARINT_MAX] = {1 << 3 | DP_WIRE_BYTES};
	dp_buf_put(&t->bytes, head, (size_t)(dp_file_varint(head + 1, n) - head));
	const size_t at = t->bytes.len;
	dp_buf_put(&t->bytes, text, n);
	if (t->bytes.failed)
		return 0;
	t->at[t->n++] = at;
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
		*slot_of(t, hash, text, n) = (struct slot){key_of(text, n), hash, number};
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
