/* SPDX-License-Identifier: MIT */
#include "injector/patch/sights.h"
#include "injector/patch/quiesce/code_index.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define PAGES 64u /* per call, few enough to stay in the processor's cache until they are compared */

struct sight {
	uint64_t addr;
	uint32_t site;
	uint8_t len;
	uint8_t want[16];
};
struct dp_sights {
	struct sight *sight; /* ascending */
	size_t n;
	size_t *odd; /* room for all */
	size_t nodd;
};

/* What one call has read: of one process after the other, by the thread that watches all of them. */
static uint8_t pages[PAGES][DP_PAGE];

void dp_placed_expected(const struct dp_installation *in, size_t i, uint8_t *bytes)
{
	const struct dp_placed *p = &in->placed[i];
	memcpy(bytes, p->new_bytes, p->len);
	for (size_t k = i; (k = dp_near_after(in, p->addr, p->len, k)) != SIZE_MAX;) {
		const struct dp_placed *q = &in->placed[k];
		for (uint8_t n = 0; n < q->nchanged && dp_placed_stands(q); n++)
			if (q->addr + n - p->addr < p->len)
				bytes[q->addr + n - p->addr] = q->new_bytes[n];
	}
}

struct dp_sights *dp_sights_destroy(struct dp_sights *s)
{
	if (!s)
		return NULL;
	free(s->sight);
	free(s->odd);
	free(s);
	return NULL;
}

void dp_sights_forget(struct dp_installation *in)
{
	in->sights = dp_sights_destroy(in->sights);
}

static bool is_watched(const struct dp_placed *p)
{
	return p->written && p->state == DP_SITE_PLANNED;
}

static int by_addr(const void *a, const void *b)
{
	const struct sight *x = a, *y = b;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static struct dp_error *create(const struct dp_installation *in, struct dp_sights **ret)
{
	struct dp_sights *s = calloc(1, sizeof(*s));
	if (s)
		s->sight = calloc(in->nplaced + 1, sizeof(*s->sight));
	if (s)
		s->odd = calloc(in->nplaced + 1, sizeof(*s->odd));
	if (!s || !s->sight || !s->odd) {
		dp_sights_destroy(s);
		return dp_error_nomem();
	}
	for (size_t i = 0; i < in->nplaced; i++) {
		const struct dp_placed *p = &in->placed[i];
		if (!is_watched(p))
			continue;
		struct sight *at = &s->sight[s->n++];
		*at = (struct sight){.addr = p->addr, .site = (uint32_t)i, .len = p->len};
		dp_placed_expected(in, i, at->want);
	}
	qsort(s->sight, s->n, sizeof(*s->sight), by_addr);
	*ret = s;
	return NULL;
}

/* ---- reading -------------------------------------------------------------------------------------------------------------- */

struct batch { /* pages that are read by one call */
	uint64_t page[PAGES];
	size_t n;
	size_t first, end; /* their sights */
};

/* Collects the pages of the next sights. A sight that crosses the end of its page is read separately. */
static void fill(const struct dp_sights *s, struct batch *b)
{
	b->n = 0;
	for (b->end = b->first; b->end < s->n; b->end++) {
		const uint64_t page = dp_page_down(s->sight[b->end].addr);
		if (b->n && b->page[b->n - 1] == page)
			continue;
		if (b->n == PAGES)
			break;
		b->page[b->n++] = page;
	}
}

/* Number of pages read, from the start. */
static size_t read_pages(const struct dp_target *t, const struct batch *b)
{
	struct iovec here = {pages, b->n * DP_PAGE}, there[PAGES];
	size_t n = 0;
	for (size_t i = 0; i < b->n; i++)
		if (i && b->page[i] == b->page[i - 1] + DP_PAGE)
			there[n - 1].iov_len += DP_PAGE;
		else
			there[n++] = (struct iovec){(void *)(uintptr_t)b->page[i], DP_PAGE};
	const ssize_t got = process_vm_readv(t->process.alive, &here, 1, there, n, 0);
	return got > 0 ? (size_t)got / DP_PAGE : 0;
}

static bool is_as_wanted(const struct dp_target *t, const struct sight *at, const uint8_t *page)
{
	uint8_t own[sizeof(at->want)];
	const uint64_t offset = at->addr % DP_PAGE;
	if (page && offset + at->len <= DP_PAGE)
		return !memcmp(page + offset, at->want, at->len);
	return dp_mem_read(&t->process, dp_addr_of(at->addr), own, at->len) == at->len && !memcmp(own, at->want, at->len);
}

static void look_at(const struct dp_target *t, struct dp_sights *s, const struct batch *b)
{
	const size_t got = read_pages(t, b);
	for (size_t i = b->first, page = 0; i < b->end; i++) {
		const struct sight *at = &s->sight[i];
		page += dp_page_down(at->addr) != b->page[page];
		if (!is_as_wanted(t, at, page < got ? pages[page] : NULL))
			s->odd[s->nodd++] = at->site;
	}
}

static int by_number(const void *a, const void *b)
{
	const size_t x = *(const size_t *)a, y = *(const size_t *)b;
	return x < y ? -1 : x > y;
}

struct dp_error *dp_sights_inspect(struct dp_target *t, const size_t **ret, size_t *n)
{
	if (!t->in.sights)
		DP_TRY(create(&t->in, &t->in.sights));
	struct dp_sights *s = t->in.sights;
	s->nodd = 0;
	for (struct batch b = {.first = 0}; b.first < s->n; b.first = b.end) {
		fill(s, &b);
		look_at(t, s, &b);
	}
	qsort(s->odd, s->nodd, sizeof(*s->odd), by_number);
	*ret = s->odd;
	*n = s->nodd;
	return NULL;
}
