/* SPDX-License-Identifier: MIT */
#include "pmodules/heap/heap_internal.h"

#include <stdlib.h>
#include <string.h>

/* Allocators with heaps of their own. Where one of them is loaded, what looks like malloc's heap says nothing. */
static const char *foreign(const struct dp_image *image)
{
	static const char *const names[] = {"jemalloc", "tcmalloc",  "mimalloc", "snmalloc", "libhoard", "libscudo",
	                                    "ld-musl",  "libc.musl", "libasan",  "liblsan",  "libtsan"};
	for (size_t i = 0; i < dp_image_nmaps(image); i++) {
		const char *path = dp_image_map(image, i)->path, *slash = strrchr(path, '/');
		for (size_t k = 0; slash && k < sizeof(names) / sizeof(*names); k++)
			if (strstr(slash, names[k]))
				return slash + 1;
	}
	return NULL;
}

static bool has_arena(const struct dp_heap_survey *h)
{
	for (size_t i = 0; i < h->nregions; i++)
		if (!h->region[i].is_large && h->region[i].n)
			return true;
	return false;
}

static uint64_t unknown_bytes(const struct dp_heap_survey *h)
{
	uint64_t n = 0;
	for (size_t i = 0; i < h->nregions; i++)
		n += h->region[i].is_damaged ? h->region[i].end - h->region[i].walked : 0;
	return n;
}

static const char *why_not(const struct dp_heap_survey *h)
{
	if (h->expired)
		return "the time was up before all memory was searched; --module-timeout gives more";
	if (h->failed)
		return "there are too many blocks, or there is not enough memory for dynprobe";
	if (!has_arena(h))
		return "no heap of glibc's malloc was found";
	return NULL;
}

static void fini(struct dp_heap_survey *h)
{
	for (size_t i = 0; i < h->nregions; i++)
		free(h->region[i].page);
	free(h->region);
	free(h->block);
	free(h->stack);
	free(h->cache);
	free(h->window);
}

void dp_heap_survey(const struct dp_heap_memory *m, struct dp_arena *arena, struct pmodule_heap *ret)
{
	struct dp_heap_survey h = {.m = m};
	const char *other = foreign(m->image);
	*ret = (struct pmodule_heap){0};
	if (other) {
		ret->why = dp_arena_printf(arena, "%s allocates here, and only the heap of glibc's malloc is known", other);
		return;
	}
	dp_heap_find(&h);
	if (has_arena(&h)) {
		dp_heap_lists(&h);
		dp_heap_mark(&h);
		dp_heap_mark_within(&h);
		dp_heap_report(&h, arena, ret);
		ret->unknown_bytes = unknown_bytes(&h);
		ret->knows_caches = h.knows_caches;
		ret->knows_fast = h.knows_fast;
	}
	const char *why = why_not(&h);
	if (why)
		*ret = (struct pmodule_heap){.why = why};
	fini(&h);
}
