/* SPDX-License-Identifier: MIT */
#include "pmodules/heap/heap_internal.h"

#include <stdlib.h>
#include <string.h>

#define PAGES  8192u /* of the cache; a power of two */
#define WINDOW (UINT64_C(1) << 20)
#define LONG   (4 * DP_HEAP_PAGE) /* longer reads go past the cache */

struct dp_heap_page {
	uint64_t addr; /* 0: free */
	size_t n;
	uint8_t bytes[DP_HEAP_PAGE];
};

bool dp_heap_is_over(struct dp_heap_survey *h)
{
	if (!h->expired && h->m->over && h->m->over(h->m->data))
		h->expired = true;
	return h->expired || h->failed;
}

static const struct dp_heap_page *page_at(struct dp_heap_survey *h, uint64_t addr)
{
	struct dp_heap_page *p = &h->cache[(addr / DP_HEAP_PAGE) % PAGES];
	if (p->addr == addr)
		return p;
	if (dp_heap_is_over(h))
		return NULL;
	p->addr = addr;
	p->n = h->m->read(addr, p->bytes, DP_HEAP_PAGE, h->m->data);
	return p;
}

bool dp_heap_get(struct dp_heap_survey *h, uint64_t addr, void *buf, size_t n)
{
	if (!h->cache && !(h->cache = calloc(PAGES, sizeof(*h->cache))))
		h->failed = true;
	for (size_t done = 0, part; done < n; done += part) {
		const uint64_t at = addr + done, in = at % DP_HEAP_PAGE;
		const struct dp_heap_page *p = h->failed ? NULL : page_at(h, at - in);
		part = n - done < DP_HEAP_PAGE - in ? n - done : (size_t)(DP_HEAP_PAGE - in);
		if (!p || p->n < in + part)
			return false;
		memcpy((uint8_t *)buf + done, p->bytes + in, part);
	}
	return true;
}

bool dp_heap_filled(const struct dp_heap_survey *h, uint64_t *from, uint64_t end, uint64_t *to)
{
	if (*from >= end)
		return false;
	if (h->m->filled)
		return h->m->filled(from, end, to, h->m->data);
	*to = end;
	return true;
}

/* Reads as much as fits into the window; 0: nothing is readable there. */
static size_t fill(struct dp_heap_survey *h, uint64_t from, uint64_t end)
{
	const size_t n = end - from < WINDOW ? (size_t)(end - from) : WINDOW;
	if (!h->window && !(h->window = malloc(WINDOW)))
		h->failed = true;
	if (dp_heap_is_over(h))
		return 0;
	if (n <= LONG)
		return dp_heap_get(h, from, h->window, n) ? n : 0;
	return h->m->read(from, h->window, n, h->m->data);
}

void dp_heap_words(struct dp_heap_survey *h, uint64_t from, uint64_t end, dp_heap_words_fn *each, void *data)
{
	uint64_t to;
	const bool is_short = end - from <= LONG;
	from = (from + 7) & ~UINT64_C(7);
	while (from < end && (is_short ? (to = end, true) : dp_heap_filled(h, &from, end, &to))) {
		while (from < to && !dp_heap_is_over(h)) {
			const size_t got = fill(h, from, to);
			const struct dp_heap_words w = {from, (const uint64_t *)(const void *)h->window, got / 8};
			if (w.n)
				each(h, &w, data);
			/* Beyond an unreadable page there may be readable ones. */
			from = got ? from + got : (from | (DP_HEAP_PAGE - 1)) + 1;
		}
		if (dp_heap_is_over(h))
			return;
		from = to;
	}
}
