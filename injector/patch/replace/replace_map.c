/* SPDX-License-Identifier: MIT */
/*
 * Checks the kind of a mapping, and whether it still exists. Uses PROCMAP_QUERY (Linux 6.11) if available, because that is one
 * call instead of reading the text of all mappings; and /proc/PID/pagemap, which tells private copies from the file's own pages.
 */
#include "injector/patch/replace/replace.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

static bool alike(const struct dp_map *a, const struct dp_map *b)
{
	return a->inode == b->inode && a->dev_major == b->dev_major && a->dev_minor == b->dev_minor && a->read == b->read &&
	       a->write == b->write && a->exec == b->exec && a->shared == b->shared;
}

static bool fits(const struct dp_replace *s, const struct dp_map *m, char why[192])
{
	static const char deleted[] = " (deleted)";
	const char *is = NULL;
	const size_t n = m ? strlen(m->path) : 0;
	if (!m || !m->inode || m->path[0] != '/')
		is = "it is not mapped from a file";
	else if (!m->exec || !m->read || m->write || m->shared)
		is = "it is not mapped readable, executable and private";
	else if (n >= sizeof(deleted) && !strcmp(m->path + n - sizeof(deleted) + 1, deleted))
		is = "its file has been deleted or replaced";
	else if (n >= DP_REPLACE_PATH_MAX || strchr(m->path, '\\'))
		is = "its file name is too long or has unusual characters";
	else if (s->locked)
		is = "the program locks its memory";
	if (is)
		snprintf(why, 192, "text of %.80s cannot be replaced page by page: %s",
		         m && m->path[0] ? m->path : "the program", is);
	return !is;
}

bool dp_replace_span_at(const struct dp_replace *s, uint64_t addr, struct dp_replace_span *ret, char why[192])
{
	const struct dp_map *m = dp_image_map_at(s->image, dp_addr_of(addr)), *next;
	if (!fits(s, m, why))
		return false;
	*ret = (struct dp_replace_span){m->start.v, m->end.v, m->offset, m};
	while ((next = dp_image_map_at(s->image, dp_addr_of(ret->start - 1))) && alike(m, next) &&
	       next->offset + (ret->start - next->start.v) == ret->offset) {
		ret->start = next->start.v;
		ret->offset = next->offset;
	}
	while ((next = dp_image_map_at(s->image, dp_addr_of(ret->end))) && alike(m, next) &&
	       next->offset == ret->offset + (ret->end - ret->start))
		ret->end = next->end.v;
	return true;
}

/* ---- current state --------------------------------------------------------------------------------------------------------- */

struct query { /* struct procmap_query of the kernel's uapi/linux/fs.h */
	uint64_t size, query_flags, query_addr, vma_start, vma_end, vma_flags, vma_page_size, vma_offset, inode;
	uint32_t dev_major, dev_minor, name_size, build_id_size;
	uint64_t name_addr, build_id_addr;
};
_Static_assert(sizeof(struct query) == 104, "the kernel's");
#define QUERY          _IOWR('f', 17, struct query)
#define QUERY_PERMS    0xfu /* readable 1, writable 2, executable 4, shared 8 */
#define QUERY_WRITABLE 0x2u

static bool ask(const struct dp_target *t, uint64_t addr, struct query *q, bool *known)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/task/%d/maps", t->process.pid, t->process.alive);
	dp_auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	*q = (struct query){.size = sizeof(*q), .query_addr = addr};
	const bool found = fd >= 0 && !ioctl(fd, QUERY, q);
	struct query first = {.size = sizeof(first), .query_flags = 0x10 /* the one that covers it, or the next */};
	*known = found || (fd >= 0 && !ioctl(fd, QUERY, &first));
	return found;
}

static bool ask_text(const struct dp_target *t, uint64_t addr, struct query *q)
{
	dp_auto_free char *maps = NULL;
	struct dp_image *image = NULL;
	struct dp_error *err = dp_process_maps(&t->process, &maps);
	if (!err)
		err = dp_image_create(maps, "", 0, &image);
	const struct dp_map *m = err ? NULL : dp_image_map_at(image, dp_addr_of(addr));
	if (m)
		*q = (struct query){.vma_start = m->start.v,
		                    .vma_end = m->end.v,
		                    .vma_offset = m->offset,
		                    .inode = m->inode,
		                    .dev_major = m->dev_major,
		                    .dev_minor = m->dev_minor,
		                    .vma_flags = m->read * 1u + m->write * 2u + m->exec * 4u + m->shared * 8u};
	dp_image_destroy(image);
	dp_error_destroy(err);
	return m;
}

static bool mapping_at(const struct dp_target *t, uint64_t addr, struct query *q)
{
	bool known;
	return ask(t, addr, q, &known) || (!known && ask_text(t, addr, q));
}

bool dp_replace_mapped(const struct dp_target *t, uint64_t addr)
{
	struct query q;
	return mapping_at(t, addr, &q);
}

bool dp_replace_maps(const struct dp_target *t, const struct dp_replace_span *span, uint64_t addr, uint64_t offset)
{
	struct query q;
	return mapping_at(t, addr, &q) && q.inode == span->map->inode && q.dev_major == span->map->dev_major &&
	       q.dev_minor == span->map->dev_minor && q.vma_offset + (addr - q.vma_start) == offset &&
	       (q.vma_flags & QUERY_PERMS) == 5;
}

static uint64_t writable_end(int maps, uint64_t addr, uint64_t most)
{
	uint64_t end = addr;
	while (end < most) {
		struct query q = {.size = sizeof(q), .query_addr = end};
		if (ioctl(maps, QUERY, &q))
			return errno == ENOENT && end > addr ? end : most;
		if (!(q.vma_flags & QUERY_WRITABLE))
			return end > addr ? end : most;
		end = q.vma_end;
	}
	return most;
}

/* Called for each thread with all of them held, so p->maps is open already if possible. */
uint64_t dp_writable_end(const struct dp_process *p, uint64_t addr, uint64_t most)
{
	char path[64];
	if (p->maps > 0)
		return writable_end(p->maps, addr, most);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/maps", p->pid, p->alive);
	dp_auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? most : writable_end(fd, addr, most);
}

/* ---- copies --------------------------------------------------------------------------------------------------------------- */

#define PM_PRESENT (UINT64_C(3) << 62) /* or swapped out */
#define PM_FILE    (UINT64_C(1) << 61)

struct dp_error *dp_replace_copies(const struct dp_target *t, uint64_t start, uint64_t end, uint8_t **ret)
{
	char path[64];
	const size_t n = (end - start) / DP_PAGE;
	uint8_t *copy = malloc(n + 1);
	uint64_t *word = malloc((n + 1) * sizeof(*word));
	snprintf(path, sizeof(path), "/proc/%d/task/%d/pagemap", t->process.pid, t->process.alive);
	dp_auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (!copy || !word) {
		free(copy);
		free(word);
		return dp_error_nomem();
	}
	const bool told = fd >= 0 && pread(fd, word, n * sizeof(*word), (off_t)(start / DP_PAGE * sizeof(*word))) ==
	                                     (ssize_t)(n * sizeof(*word));
	for (size_t i = 0; told && i < n; i++)
		copy[i] = (word[i] & PM_PRESENT) && !(word[i] & PM_FILE);
	free(word);
	if (!told) {
		free(copy);
		return dp_error(DP_TAG_CHANGED, "the kernel does not report which pages of process %d are private copies",
		                t->process.pid);
	}
	*ret = copy;
	return NULL;
}
