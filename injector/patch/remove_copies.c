/* SPDX-License-Identifier: MIT */
/*
 * Gives private copies of text pages back to the file. The pages are found while the threads run. They are held, for a few pages
 * at a time, only to make sure that the mapping is still the file's text.
 */
#include "injector/patch/remove_copies.h"
#include "injector/patch/replace/replace.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define HOLD_NS UINT64_C(2000000)
#define TRIES   5

struct page {
	struct dp_replace_span span;
	uint64_t addr;
	uint8_t file[DP_PAGE];
};
struct pages {
	struct dp_target *t;
	struct page **page;
	size_t n, done;
};

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

/* Owned by the caller; NULL if there are none. */
static uint64_t *written_pages(const struct dp_installation *in, size_t *ret)
{
	size_t n = 0, kept = 0;
	for (size_t i = 0; i < in->nplaced; i++)
		n += in->placed[i].by_write;
	uint64_t *page = n ? calloc(2 * n, sizeof(*page)) : NULL;
	*ret = 0;
	if (!page)
		return NULL;
	n = 0;
	for (size_t i = 0; i < in->nplaced; i++) {
		const struct dp_placed *p = &in->placed[i];
		if (!p->by_write)
			continue;
		page[n++] = dp_page_down(p->addr);
		page[n++] = dp_page_down(p->addr + p->len - 1);
	}
	qsort(page, n, sizeof(*page), by_value);
	for (size_t i = 0; i < n; i++)
		if (!kept || page[kept - 1] != page[i])
			page[kept++] = page[i];
	*ret = kept;
	return page;
}

/* The file's bytes for a mapped page. No relocations are applied; the kernel applies none either. */
static bool read_file_page(const struct dp_target *t, const struct dp_map *map, uint64_t page, uint8_t bytes[DP_PAGE])
{
	char path[96];
	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", t->process.pid, (unsigned long long)map->start.v,
	         (unsigned long long)map->end.v);
	dp_auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		snprintf(path, sizeof(path), "/proc/%d/root", t->process.alive);
		dp_auto_close int root = open(path, O_PATH | O_CLOEXEC);
		fd = root < 0 ? -1 : openat(root, map->path + 1, O_RDONLY | O_CLOEXEC);
	}
	struct stat st;
	if (fd < 0 || fstat(fd, &st) || st.st_ino != map->inode)
		return false;
	memset(bytes, 0, DP_PAGE);
	return pread(fd, bytes, DP_PAGE, (off_t)(map->offset + page - map->start.v)) > 0;
}

static bool equals(const struct dp_target *t, const struct page *p)
{
	uint8_t now[DP_PAGE];
	return dp_mem_read(&t->process, dp_addr_of(p->addr), now, sizeof(now)) == sizeof(now) &&
	       !memcmp(now, p->file, sizeof(now));
}

static bool may_go(const struct dp_target *t, const struct dp_image *image, uint64_t addr, struct page *ret)
{
	const struct dp_map *m = dp_image_map_at(image, dp_addr_of(addr));
	if (!m || m->shared || m->write || !m->inode || m->path[0] != '/')
		return false;
	ret->addr = addr;
	ret->span = (struct dp_replace_span){m->start.v, m->end.v, m->offset, m};
	return read_file_page(t, m, addr, ret->file) && equals(t, ret);
}

static void find(struct pages *w, const struct dp_image *image, const uint64_t *addr, size_t n)
{
	w->page = calloc(n + 1, sizeof(struct page *));
	for (size_t i = 0; w->page && i < n; i++) {
		struct page *p = malloc(sizeof(*p));
		if (p && may_go(w->t, image, addr[i], p))
			w->page[w->n++] = p;
		else
			free(p);
	}
}

static void give_back(const struct pages *w, const struct page *p, struct dp_borrow *b)
{
	int64_t ignored;
	if (dp_replace_maps(w->t, &p->span, p->addr, p->span.offset + (p->addr - p->span.start)) && equals(w->t, p))
		dp_error_destroy(
		        dp_remote_syscall(b, SYS_madvise, (const uint64_t[6]){p->addr, DP_PAGE, MADV_DONTNEED}, &ignored));
}

static struct dp_error *give_back_some(struct pages *w, const struct dp_installation *in, struct dp_freeze *f)
{
	struct dp_borrow *b = NULL;
	DP_TRY(dp_stopped_holds(w->t, in));
	DP_TRY(dp_borrow_held(w->t, f, &b));
	for (const uint64_t until = dp_now_ns() + HOLD_NS; w->done < w->n && dp_now_ns() < until; w->done++)
		give_back(w, w->page[w->done], b);
	return dp_borrow_end(b, NULL);
}

static struct dp_error *hold_once(struct pages *w, const struct dp_installation *in, struct dp_remove_report *report)
{
	struct dp_freeze f = {0};
	struct dp_priority priority;
	dp_priority_raise(&priority);
	struct dp_error *err = dp_freeze_with_retry(w->t, &f);
	if (!err) {
		err = give_back_some(w, in, &f);
		dp_thaw_all(&f);
	}
	dp_priority_restore(&priority);
	if (f.end_ns - f.begin_ns > report->pause_ns)
		report->pause_ns = f.end_ns - f.begin_ns;
	return err;
}

static void give_back_all(struct pages *w, const struct dp_installation *in, struct dp_remove_report *report)
{
	for (int failed = 0; w->done < w->n && failed < TRIES;) {
		struct dp_error *err = hold_once(w, in, report);
		failed += err != NULL;
		dp_error_destroy(err);
		dp_freeze_retry_rest(0);
	}
}

void dp_remove_copies(struct dp_target *t, const struct dp_installation *in, struct dp_remove_report *report)
{
	struct pages w = {.t = t};
	struct dp_image *image = NULL;
	size_t n = 0;
	dp_auto_free uint64_t *addr = written_pages(in, &n);
	dp_auto_free char *maps = NULL;
	struct dp_error *err = n ? dp_process_maps(&t->process, &maps) : NULL;
	if (n && !err)
		err = dp_image_create(maps, "", 0, &image);
	if (image)
		find(&w, image, addr, n);
	give_back_all(&w, in, report);
	for (size_t i = 0; i < w.n; i++)
		free(w.page[i]);
	free(w.page);
	dp_image_destroy(image);
	dp_error_destroy(err);
}
