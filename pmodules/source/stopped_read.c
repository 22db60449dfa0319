/* SPDX-License-Identifier: MIT */
/*
 * Memory of a stopped process, in cached pages. The prefetch has left the addresses of the pages it read. While the threads are
 * stopped, these pages and the stacks are read in a few calls of up to a thousand ranges each.
 */
#include "pmodules/source/core.h"
#include "pmodules/source/stopped_internal.h"

#include "injector/tracee/stop/freeze.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define STACK_LEAST (2 * DP_PAGE_BYTES)
#define RED_ZONE    UINT64_C(128)

static uint64_t min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static size_t read_from(pid_t pid, uint64_t addr, void *buf, size_t n)
{
	const struct iovec here = {buf, n}, there = {(void *)(uintptr_t)addr, n};
	errno = 0;
	const ssize_t got = process_vm_readv(pid, &here, 1, &there, 1, 0);
	return got > 0 ? (size_t)got : 0;
}

/* ---- many ranges at once ------------------------------------------------------------------------------------------------ */

#define RANGES 512u

struct batch {
	struct dp_stopped *s;
	struct iovec here[RANGES], there[RANGES];
	size_t n;
};

static void note_page(struct dp_page_cache *p, uint64_t addr, uint8_t *bytes, enum dp_page_state state)
{
	struct dp_kept_page *page = dp_pages_at(p, addr);
	if (!page)
		return;
	page->bytes = bytes;
	page->state = state;
	page->late = false;
}

/* The first `got` bytes of a range were read; the page after them is missing. Reduces the range to the rest; false: none. */
static bool note_range(struct dp_stopped *s, struct iovec *here, struct iovec *there, size_t got)
{
	const uint64_t addr = (uint64_t)(uintptr_t)there->iov_base;
	uint8_t *bytes = here->iov_base;
	const size_t whole = got & ~(size_t)(DP_PAGE_BYTES - 1);
	for (size_t at = 0; at < whole; at += DP_PAGE_BYTES)
		note_page(&s->pages, addr + at, bytes + at, DP_PAGE_HERE);
	if (whole == there->iov_len)
		return false;
	note_page(&s->pages, addr + whole, bytes + whole, DP_PAGE_ABSENT);
	const size_t left = there->iov_len - whole - DP_PAGE_BYTES;
	*here = (struct iovec){bytes + whole + DP_PAGE_BYTES, left};
	*there = (struct iovec){(void *)(uintptr_t)(addr + whole + DP_PAGE_BYTES), left};
	return left > 0;
}

static void flush(struct batch *b)
{
	size_t from = dp_now_ns() < b->s->until_ns ? 0 : b->n; /* after the deadline: read on demand, and late */
	while (from < b->n) {
		const size_t left = b->n - from;
		ssize_t got = process_vm_readv(b->s->target.process.alive, b->here + from, left, b->there + from, left, 0);
		bool whole = true;
		if (got < 0)
			got = 0;
		/* The call stopped at the first missing page. */
		while (from < b->n && whole) {
			const size_t part = min((uint64_t)got, b->there[from].iov_len);
			whole = part == b->there[from].iov_len;
			got -= (ssize_t)part;
			from += !note_range(b->s, &b->here[from], &b->there[from], part);
		}
	}
	b->n = 0;
}

static void add_range(struct batch *b, uint64_t addr, uint8_t *bytes, uint64_t size)
{
	const size_t n = b->n;
	if (n && (uint8_t *)b->here[n - 1].iov_base + b->here[n - 1].iov_len == bytes &&
	    (uint64_t)(uintptr_t)b->there[n - 1].iov_base + b->there[n - 1].iov_len == addr) {
		b->here[n - 1].iov_len += size;
		b->there[n - 1].iov_len += size;
		return;
	}
	if (n == RANGES)
		flush(b);
	b->here[b->n] = (struct iovec){bytes, size};
	b->there[b->n++] = (struct iovec){(void *)(uintptr_t)addr, size};
}

/* ---- while the threads are stopped -------------------------------------------------------------------------------------- */

/* The part of a thread's stack to read at once; false if rsp is not in a mapping. */
static bool stack_of(const struct dp_stopped *s, const struct dp_stopped_thread *t, uint64_t *from, uint64_t *to)
{
	const uint64_t rsp = t->regs.rsp;
	const struct dp_map *m = dp_image_map_at(s->target.image, dp_addr_of(rsp));
	if (!m || !m->read || !m->write)
		return false;
	*from = dp_page_of(rsp - RED_ZONE);
	if (*from < m->start.v)
		*from = m->start.v;
	*to = min(m->end.v, *from + s->options.stack_bytes);
	return *from < *to;
}

static void add_stacks(struct batch *b)
{
	struct dp_stopped *s = b->s;
	for (size_t i = 0; i < s->nthreads; i++) {
		uint64_t from, to;
		if (!stack_of(s, &s->thread[i], &from, &to))
			continue;
		for (; from < to; from += DP_PAGE_BYTES) {
			const struct dp_kept_page *page = dp_pages_find(&s->pages, from);
			uint8_t *bytes = page && page->bytes ? page->bytes : dp_pages_room(&s->pages, 1);
			if (!bytes)
				return;
			add_range(b, from, bytes, DP_PAGE_BYTES);
		}
	}
}

static void add_stale(struct batch *b)
{
	size_t n;
	struct dp_kept_page **list = dp_pages_sorted(&b->s->pages, &n);
	for (size_t i = 0; list && i < n; i++)
		if (list[i]->state == DP_PAGE_STALE && list[i]->bytes)
			add_range(b, list[i]->addr, list[i]->bytes, DP_PAGE_BYTES);
	free(list);
}

void dp_stopped_reserve(struct dp_stopped *s)
{
	/* With very many threads, read less of each stack: half of the limit stays for what the stacks refer to. */
	const uint64_t share = dp_page_of((uint64_t)s->pages.most * DP_PAGE_BYTES / 2 / (s->nthreads + 1));
	if (share < s->options.stack_bytes)
		s->options.stack_bytes = share < STACK_LEAST ? STACK_LEAST : share;
	dp_pages_reserve(&s->pages, s->nthreads * (s->options.stack_bytes / DP_PAGE_BYTES));
}

void dp_stopped_read_all(struct dp_stopped *s)
{
	static struct batch b;
	b.s = s;
	b.n = 0;
	add_stacks(&b);
	flush(&b);
	if (s->mode == DP_STOPPED_STOP) {
		add_stale(&b);
		flush(&b);
	}
}

/* ---- page by page ------------------------------------------------------------------------------------------------------- */

/* Memory that cannot be written is the same at all times. */
static bool is_constant(const struct dp_map *m)
{
	return m && m->read && !m->write && !m->shared && m->inode;
}

/* Reads from the running process. */
static size_t read_living(struct dp_stopped *s, uint64_t addr, void *buf, size_t n, bool *late)
{
	const struct dp_map *m = dp_image_map_at(s->target.image, dp_addr_of(addr));
	*late = !s->held && !is_constant(m);
	size_t got = read_from(s->target.process.alive, addr, buf, n);
	if (!got && errno == ESRCH && dp_pick_living(&s->target))
		got = read_from(s->target.process.alive, addr, buf, n);
	if (!got && m && m->exec && !m->read) /* execute-only text */
		got = dp_mem_read(&s->target.process, dp_addr_of(addr), buf, min(n, m->end.v - addr));
	return got;
}

/* The copy lacks memory that the program excludes from its children; memory shared with others changes. */
static size_t read_copy(struct dp_stopped *s, uint64_t addr, void *buf, size_t n, bool *late)
{
	const struct dp_map *m = dp_image_map_at(s->target.image, dp_addr_of(addr));
	const size_t got = read_from(dp_copy_pid(s->copy), addr, buf, n);
	*late = m && m->shared;
	return got ? got : read_living(s, addr, buf, n, late);
}

static size_t read_source(struct dp_stopped *s, uint64_t addr, void *buf, size_t n, bool *late)
{
	if (s->core)
		return (*late = false, dp_core_read(s->core, addr, buf, n));
	return s->copy ? read_copy(s, addr, buf, n, late) : read_living(s, addr, buf, n, late);
}

static bool is_known(const struct dp_stopped *s, const struct dp_kept_page *page)
{
	if (!page)
		return false;
	return page->state == DP_PAGE_HERE || page->state == DP_PAGE_ABSENT || (page->state == DP_PAGE_STALE && !s->was_held);
}

/* Reads pages [addr, end), all unknown, into the cache. False if they are not cached. */
static bool fetch(struct dp_stopped *s, uint64_t addr, uint64_t end)
{
	bool late = false;
	const struct dp_kept_page *old = dp_pages_find(&s->pages, addr);
	const bool reuse = old && old->bytes && end - addr == DP_PAGE_BYTES;
	uint8_t *bytes = reuse ? old->bytes : dp_pages_room(&s->pages, (end - addr) / DP_PAGE_BYTES);
	if (!bytes)
		return false;
	const size_t got = read_source(s, addr, bytes, end - addr, &late);
	const bool constant = is_constant(dp_image_map_at(s->target.image, dp_addr_of(addr)));
	const size_t here =
	        got / DP_PAGE_BYTES ? got / DP_PAGE_BYTES : 1; /* the state of pages after the first missing one is unknown */
	const bool lasts = s->was_held || s->core || constant;
	for (size_t i = 0; i < here; i++) {
		struct dp_kept_page *page = dp_pages_at(&s->pages, addr + i * DP_PAGE_BYTES);
		if (!page)
			return false;
		const bool missing = got < DP_PAGE_BYTES;
		*page = (struct dp_kept_page){.addr = page->addr,
		                              .bytes = missing ? NULL : bytes + i * DP_PAGE_BYTES,
		                              .late = late,
		                              .constant = constant && !missing};
		page->state = !lasts ? DP_PAGE_STALE : missing ? DP_PAGE_ABSENT : DP_PAGE_HERE;
		s->nlate += late && !missing;
	}
	if (!reuse)
		dp_pages_give_back(&s->pages, (end - addr) / DP_PAGE_BYTES - got / DP_PAGE_BYTES);
	return true;
}

/* The end of the run of unknown pages at `addr`, at most `end`; at least one page. */
static uint64_t unknown_until(const struct dp_stopped *s, uint64_t addr, uint64_t end)
{
	uint64_t at = addr + DP_PAGE_BYTES;
	while (at < end && !dp_pages_find(&s->pages, at))
		at += DP_PAGE_BYTES;
	return at;
}

/* Reads without caching. */
static size_t read_past(struct dp_stopped *s, uint64_t addr, void *buf, size_t n, bool *late)
{
	bool past = false;
	const size_t got = read_source(s, addr, buf, n, &past);
	*late |= past;
	s->nlate += past && got;
	return got;
}

static size_t read_pages(struct dp_stopped *s, uint64_t addr, uint8_t *buf, size_t n, bool *late)
{
	size_t done = 0;
	while (done < n) {
		const uint64_t at = addr + done, in = at & (DP_PAGE_BYTES - 1);
		const size_t part = min(DP_PAGE_BYTES - in, n - done);
		struct dp_kept_page *page = dp_pages_find(&s->pages, at - in);
		if (!is_known(s, page)) {
			if (!fetch(s, at - in, unknown_until(s, at - in, addr + n)))
				return done + read_past(s, at, buf + done, n - done, late);
			page = dp_pages_find(&s->pages, at - in);
		}
		if (!page || !page->bytes || page->state == DP_PAGE_ABSENT)
			return done;
		memcpy(buf + done, page->bytes + in, part);
		page->used |= s->was_held;
		*late |= page->late;
		done += part;
	}
	return done;
}

static bool in_bounds(uint64_t addr, size_t n)
{
	return addr >= DP_PAGE_BYTES && addr < UINT64_C(1) << 47 && n <= (UINT64_C(1) << 47) - addr;
}

size_t dp_stopped_read(struct dp_stopped *s, uint64_t addr, void *buf, size_t n, bool *late)
{
	bool is_late = false;
	if (!in_bounds(addr, n))
		return 0;
	dp_stopped_in_time(s);
	const size_t got = read_pages(s, addr, buf, n, &is_late);
	if (late)
		*late = is_late;
	return got;
}

size_t dp_stopped_peek(struct dp_stopped *s, uint64_t addr, void *buf, size_t n)
{
	bool late = false;
	return in_bounds(addr, n) ? read_pages(s, addr, buf, n, &late) : 0;
}

void dp_stopped_kept(struct dp_stopped *s, void (*each)(uint64_t addr, const uint8_t *bytes, size_t n, void *data), void *data)
{
	size_t n;
	struct dp_kept_page **list = dp_pages_sorted(&s->pages, &n);
	for (size_t i = 0; list && i < n; i++)
		if (list[i]->state == DP_PAGE_HERE && list[i]->used)
			each(list[i]->addr, list[i]->bytes, DP_PAGE_BYTES, data);
	free(list);
}
