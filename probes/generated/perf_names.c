/* SPDX-License-Identifier: MIT */
#include "probes/generated/perf_names.h"

#include <stdlib.h>
#include <string.h>

#define USER_END (UINT64_C(1) << 47)
#define OVERLAPS 32u /* names that begin later but do not contain the address */

struct entry {
	uint64_t start, size;
	uint32_t name; /* offset in the text */
	uint32_t line; /* its number: a later one counts */
};

struct dp_perf_names {
	struct entry *entry;
	size_t n, capacity;
	size_t sorted; /* entries in order, of different starts; those after them are as they came */
	uint32_t lines;
	char *text;
	size_t used, allocated;
};

struct dp_perf_names *dp_perf_names_create(void)
{
	return calloc(1, sizeof(struct dp_perf_names));
}

struct dp_perf_names *dp_perf_names_destroy(struct dp_perf_names *p)
{
	if (!p)
		return NULL;
	free(p->entry);
	free(p->text);
	free(p);
	return NULL;
}

/* ---- lines ---------------------------------------------------------------------------------------------------------------- */

static bool hex(const char **at, const char *end, uint64_t *ret)
{
	const char *c = *at;
	unsigned digits = 0;
	*ret = 0;
	if (end - c > 2 && c[0] == '0' && (c[1] == 'x' || c[1] == 'X'))
		c += 2;
	for (; c < end; c++, digits++) {
		const unsigned d = (unsigned char)*c, low = d | 0x20;
		const unsigned digit = d - '0' < 10 ? d - '0' : low - 'a' < 6 ? low - 'a' + 10 : 16;
		if (digit == 16)
			break;
		if (*ret >> 60)
			return false;
		*ret = *ret << 4 | digit;
	}
	if (!digits || c == end || *c != ' ')
		return false;
	*at = c + 1;
	return true;
}

static bool grow(void **array, size_t *capacity, size_t size, size_t needed)
{
	const size_t more = needed > 2 * *capacity ? needed : 2 * *capacity;
	void *grown = needed > *capacity ? realloc(*array, more * size) : *array;
	if (!grown)
		return false;
	*capacity = needed > *capacity ? more : *capacity;
	*array = grown;
	return true;
}

static void add_name(struct dp_perf_names *p, const char *name, size_t n)
{
	static const char cut[] = "...";
	const bool is_long = n > DP_PERF_NAME_MAX;
	n = is_long ? DP_PERF_NAME_MAX - strlen(cut) : n;
	memcpy(p->text + p->used, name, n);
	p->used += n;
	if (is_long) {
		memcpy(p->text + p->used, cut, strlen(cut));
		p->used += strlen(cut);
	}
	p->text[p->used++] = 0;
}

void dp_perf_names_put(struct dp_perf_names *p, uint64_t start, uint64_t size, const char *name, size_t n)
{
	const struct entry e = {.start = start, .size = size, .name = (uint32_t)p->used, .line = p->lines};
	if (!n || memchr(name, 0, n) || !size || start >= USER_END || size > USER_END - start)
		return;
	const size_t room = (n < DP_PERF_NAME_MAX ? n : DP_PERF_NAME_MAX) + 1;
	if (p->n >= DP_PERF_NAMES_MAX || p->used + room > DP_PERF_BYTES_MAX ||
	    !grow((void **)&p->entry, &p->capacity, sizeof(*p->entry), p->n + 1) ||
	    !grow((void **)&p->text, &p->allocated, 1, p->used + room))
		return;
	add_name(p, name, n);
	p->entry[p->n++] = e;
	p->lines++;
}

static void add_line(struct dp_perf_names *p, const char *line, const char *end)
{
	uint64_t start, size;
	if (hex(&line, end, &start) && hex(&line, end, &size))
		dp_perf_names_put(p, start, size, line, (size_t)(end - line));
}

size_t dp_perf_names_add(struct dp_perf_names *p, const char *text, size_t n)
{
	const char *at = text, *end;
	for (; (end = memchr(at, '\n', n - (size_t)(at - text))); at = end + 1)
		add_line(p, at, end > at && end[-1] == '\r' ? end - 1 : end);
	return (size_t)(at - text);
}

/* ---- lookup --------------------------------------------------------------------------------------------------------------- */

static int in_order(const void *x, const void *y)
{
	const struct entry *a = x, *b = y;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return (a->line > b->line) - (a->line < b->line);
}

/* Of entries with the same start, the last one stays. */
static void drop_replaced(struct dp_perf_names *p)
{
	size_t kept = 0;
	for (size_t i = 0; i < p->n; i++) {
		if (kept && p->entry[kept - 1].start == p->entry[i].start)
			kept--;
		p->entry[kept++] = p->entry[i];
	}
	p->n = p->sorted = kept;
}

/* Merges the new entries into the sorted ones, from the end. */
static void sort(struct dp_perf_names *p)
{
	const size_t fresh = p->n - p->sorted;
	struct entry *copy = fresh && p->sorted ? malloc(fresh * sizeof(*copy)) : NULL;
	if (!fresh)
		return;
	if (!copy) {
		qsort(p->entry, p->n, sizeof(*p->entry), in_order);
		drop_replaced(p);
		return;
	}
	qsort(p->entry + p->sorted, fresh, sizeof(*p->entry), in_order);
	memcpy(copy, p->entry + p->sorted, fresh * sizeof(*copy));
	for (size_t to = p->n, a = p->sorted, b = fresh; b;)
		p->entry[--to] = a && in_order(&p->entry[a - 1], &copy[b - 1]) > 0 ? p->entry[--a] : copy[--b];
	free(copy);
	drop_replaced(p);
}

bool dp_perf_names_at(struct dp_perf_names *p, uint64_t addr, struct dp_perf_name *ret)
{
	size_t lo = 0, hi;
	const struct entry *found = NULL;
	sort(p);
	for (hi = p->n; lo < hi;) { /* the first entry behind addr */
		const size_t mid = lo + (hi - lo) / 2;
		if (p->entry[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (size_t i = lo, steps = 0; i-- && steps < OVERLAPS; steps++) {
		const struct entry *e = &p->entry[i];
		if (addr - e->start < e->size && (!found || e->line > found->line))
			found = e;
	}
	if (found)
		*ret = (struct dp_perf_name){found->start, found->size, p->text + found->name};
	return found;
}

size_t dp_perf_names_count(struct dp_perf_names *p)
{
	sort(p);
	return p->n;
}
