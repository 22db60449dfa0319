/* SPDX-License-Identifier: MIT */
#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { CHUNK = 16384, ALIGN = 16 };
/* A large arena grows in huge pages: page faults for 4 KiB pages would cost more than filling them. */
#define LARGE     ((size_t)2 << 20)
#define TOTAL_MAX (256u << 20)

struct dp_arena_chunk {
	struct dp_arena_chunk *next;
	size_t used, size;
	size_t mapped; /* size of the mapping that starts with this chunk, in bytes; 0 if malloc'ed */
	unsigned char bytes[] __attribute__((aligned(ALIGN)));
};

/* Maps one huge page, aligned to its size. NULL if there is no memory. */
static struct dp_arena_chunk *map_large(void)
{
	unsigned char *p = mmap(NULL, 2 * LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	const size_t before = -(uintptr_t)p % LARGE;
	if (before)
		munmap(p, before);
	munmap(p + before + LARGE, LARGE - before);
	madvise(p + before, LARGE, MADV_HUGEPAGE); /* best effort */
	return (struct dp_arena_chunk *)(p + before);
}

static struct dp_arena_chunk *make_chunk(const struct dp_arena *a, size_t n)
{
	const bool large = a->total >= LARGE && n <= LARGE / 4 && a->total + LARGE < TOTAL_MAX;
	struct dp_arena_chunk *c = large ? map_large() : NULL;
	if (c) {
		c->mapped = LARGE;
		c->size = LARGE - sizeof(*c);
		return c;
	}
	const size_t size = n > CHUNK ? n : CHUNK;
	c = a->total + size < TOTAL_MAX ? calloc(1, sizeof(*c) + size) : NULL;
	if (c)
		c->size = size;
	return c;
}

static bool grow(struct dp_arena *a, size_t n)
{
	struct dp_arena_chunk *c = make_chunk(a, n);
	if (!c)
		return false;
	c->next = a->chunk;
	a->chunk = c;
	a->total += c->size;
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
		if (a->chunk->mapped)
			munmap(a->chunk, a->chunk->mapped);
		else
			free(a->chunk);
		a->chunk = next;
	}
	*a = (struct dp_arena){0};
}
