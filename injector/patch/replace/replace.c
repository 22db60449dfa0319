/* SPDX-License-Identifier: MIT */
/* Holds the edits as pages. Reads see pending edits, so that one edit can build on another. */
#include "injector/patch/replace/replace.h"
#include "injector/tracee/proc/proc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool locks_memory(const struct dp_target *t)
{
	struct dp_buf status;
	dp_buf_init(&status);
	const bool locks = !dp_proc_slurp(&status, "/proc/%d/task/%d/status", t->process.pid, t->process.alive) ||
	                   dp_status_long(dp_buf_str(&status), "VmLck", 0) > 0;
	dp_buf_fini(&status);
	return locks;
}

struct dp_error *dp_replace_create(struct dp_target *t, const struct dp_installation *in, struct dp_replace **ret)
{
	struct dp_replace *s = calloc(1, sizeof(*s));
	if (!s)
		return dp_error_nomem();
	s->t = t;
	s->in = in;
	s->mem = -1;
	s->locked = locks_memory(t);
	struct dp_error *err = dp_process_maps(&t->process, &s->maps);
	if (!err)
		err = dp_image_create(s->maps, "", 0, &s->image);
	if (err)
		dp_replace_destroy(s);
	else
		*ret = s;
	return err;
}

struct dp_replace *dp_replace_destroy(struct dp_replace *s)
{
	if (!s)
		return NULL;
	for (size_t i = 0; i < s->n; i++)
		free(s->page[i]);
	free(s->page);
	if (s->mem >= 0)
		close(s->mem);
	dp_stays_destroy(s->stays);
	dp_image_destroy(s->image);
	free(s->maps);
	free(s);
	return NULL;
}

/* Index of the page, or where it would be inserted. */
static size_t find(const struct dp_replace *s, uint64_t page)
{
	size_t lo = 0, hi = s->n;
	while (lo < hi) {
		const size_t mid = (lo + hi) / 2;
		if (s->page[mid]->addr < page)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool make_room(struct dp_replace *s)
{
	if (s->n < s->cap)
		return true;
	const size_t cap = s->cap ? 2 * s->cap : 16;
	struct dp_replace_page **grown = realloc(s->page, cap * sizeof(*grown));
	if (!grown)
		return false;
	s->page = grown;
	s->cap = cap;
	return true;
}

struct dp_replace_page *dp_replace_page(struct dp_replace *s, uint64_t addr)
{
	const uint64_t at = dp_page_down(addr);
	const size_t i = find(s, at);
	if (i < s->n && s->page[i]->addr == at)
		return s->page[i];
	struct dp_replace_page *p = make_room(s) ? calloc(1, sizeof(*p)) : NULL;
	if (!p)
		return NULL;
	p->addr = at;
	if (dp_mem_read(&s->t->process, dp_addr_of(at), p->was, DP_PAGE) != DP_PAGE) {
		free(p);
		return NULL;
	}
	memcpy(p->is, p->was, DP_PAGE);
	memmove(&s->page[i + 1], &s->page[i], (s->n - i) * sizeof(struct dp_replace_page *));
	s->page[i] = p;
	s->n++;
	return p;
}

const struct dp_replace_page *dp_replace_touched(const struct dp_replace *s, uint64_t addr)
{
	const size_t i = find(s, dp_page_down(addr));
	const struct dp_replace_page *p = i < s->n ? s->page[i] : NULL;
	return p && p->addr == dp_page_down(addr) && p->touched && !p->stands ? p : NULL;
}

size_t dp_replace_read(struct dp_replace *s, uint64_t addr, void *buf, size_t n)
{
	size_t done = 0;
	while (done < n) {
		const struct dp_replace_page *p = dp_replace_page(s, addr + done);
		const size_t at = (addr + done) % DP_PAGE, part = n - done < DP_PAGE - at ? n - done : DP_PAGE - at;
		if (!p)
			break;
		memcpy((uint8_t *)buf + done, p->is + at, part);
		done += part;
	}
	return done;
}

/* Touches every page of the site, even unchanged ones, so that the bytes that its jump relies on are replaced with it. */
static bool touch(struct dp_replace *s, const struct dp_replace_edit *e)
{
	const uint64_t last = dp_page_down(e->addr + e->len - 1);
	struct dp_replace_span span;
	for (uint64_t at = dp_page_down(e->addr); at <= last; at += DP_PAGE) {
		struct dp_replace_page *p = dp_replace_span_at(s, at, &span, s->why) ? dp_replace_page(s, at) : NULL;
		if (!p || p->stands)
			return false;
		p->touched = true;
		p->joined |= at < last;
	}
	return last < span.end && e->addr >= span.start;
}

bool dp_replace_write(struct dp_replace *s, const struct dp_replace_edit *e)
{
	if (!touch(s, e))
		return false;
	for (size_t i = 0; i < e->n; i++) {
		const uint64_t at = e->addr + e->skip + i;
		dp_replace_page(s, at)->is[at % DP_PAGE] = e->bytes[i];
	}
	return true;
}

void dp_replace_again(struct dp_replace *s)
{
	for (size_t i = 0; i < s->n; i++) {
		struct dp_replace_page *p = s->page[i];
		memcpy(p->stands ? p->was : p->is, p->stands ? p->is : p->was, DP_PAGE);
		p->touched = p->joined = p->stands = p->failed = false;
	}
}

const char *dp_replace_why(const struct dp_replace *s)
{
	return s->why[0] ? s->why : "the text cannot be read";
}

bool dp_replace_stands(const struct dp_replace *s, uint64_t addr)
{
	const size_t i = find(s, dp_page_down(addr));
	return i < s->n && s->page[i]->addr == dp_page_down(addr) && s->page[i]->stands;
}
