/* SPDX-License-Identifier: MIT */
#include "probes/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 16384, ALIGN = 16 };
#define TOTAL_MAX (256u << 20)

struct dp_arena_chunk {
	struct dp_arena_chunk *next;
	size_t used, size;
	unsigned char bytes[] __attribute__((aligned(ALIGN)));
};

static bool grow(struct dp_arena *a, size_t n)
{
	const size_t size = n > CHUNK ? n : CHUNK;
	struct dp_arena_chunk *c = a->total + size < TOTAL_MAX ? calloc(1, sizeof(*c) + size) : NULL;
	if (!c)
		return false;
	c->size = size;
	c->next = a->chunk;
	a->chunk = c;
	a->total += size;
	return true;
}

void *dp_arena_alloc(struct dp_arena *a, size_t n)
{
	n = (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if (n > TOTAL_MAX || ((!a->chunk || a->chunk->size - a->chunk->used < n) && !grow(a, n))) {
		a->failed = true;
		return NULL;
	}
	void *p = a->chunk->bytes + a->chunk->used;
	a->chunk->used += n;
	return p;
}

char *dp_arena_copy(struct dp_arena *a, const char *text, size_t n)
{
	char *copy = dp_arena_alloc(a, n + 1);
	if (copy)
		memcpy(copy, text, n);
	return copy;
}

char *dp_arena_printf(struct dp_arena *a, const char *fmt, ...)
{
	va_list args;
	char *text = NULL, *copy = NULL;
	va_start(args, fmt);
	const int n = vasprintf(&text, fmt, args);
	va_end(args);
	if (n < 0) {
		a->failed = true;
		return NULL;
	}
	copy = dp_arena_copy(a, text, (size_t)n);
	free(text);
	return copy;
}

void dp_arena_fini(struct dp_arena *a)
{
	while (a->chunk) {
		struct dp_arena_chunk *next = a->chunk->next;
		free(a->chunk);
		a->chunk = next;
	}
	*a = (struct dp_arena){0};
}
