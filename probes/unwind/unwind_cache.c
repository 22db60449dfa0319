/* SPDX-License-Identifier: MIT */
#include "probes/unwind/unwind_cache.h"
#include "base/cleanup.h"
#include "probes/unwind/unwind_cache_trim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define CACHE_MAGIC   UINT64_C(0x316368637577702e)
#define CACHE_VERSION 4u /* raise it when the meaning of rows changes or the compiler improves */
#define BUILD_ID_MIN  16 /* hex digits; shorter ones may not be unique */
#define SELDOM        16 /* of so many new files one makes the cache smaller */

/* A cache file is this header, then the rules, the offsets and the indices. */
struct head {
	uint64_t magic;
	uint64_t checksum; /* of everything after this word */
	uint32_t version;
	uint32_t row_size;
	uint64_t start, end;
	uint64_t n, nrules;
};

static uint64_t mix(uint64_t h, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;
	uint64_t word;

	for (; n; p += sizeof(word), n -= n < sizeof(word) ? n : sizeof(word)) {
		word = n;
		memcpy(&word, p, n < sizeof(word) ? n : sizeof(word));
		h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 32;
	}
	return h;
}

static uint64_t checksum_of(const struct head *head, const void *rules, const void *pcs, const void *rows)
{
	size_t skip = offsetof(struct head, version);
	uint64_t h = mix(CACHE_MAGIC, (const uint8_t *)head + skip, sizeof(*head) - skip);

	h = mix(h, rules, head->nrules * sizeof(struct dp_unwind_row));
	h = mix(h, pcs, head->n * sizeof(uint32_t));
	return mix(h, rows, head->n * sizeof(uint16_t));
}

static bool usable(const struct dp_unwind_key *key)
{
	size_t n = strlen(key->build_id);

	return key->dir && *key->dir && n >= BUILD_ID_MIN && n < NAME_MAX / 2 && strspn(key->build_id, "0123456789abcdef") == n;
}

static bool path_of(const struct dp_unwind_key *key, char path[PATH_MAX])
{
	int n = snprintf(path, PATH_MAX, "%s/%s-%llx" DP_UNWIND_CACHE_SUFFIX, key->dir, key->build_id,
	                 (unsigned long long)key->start);

	return n > 0 && n < PATH_MAX;
}

static bool read_all(int fd, void *to, size_t n)
{
	uint8_t *p = to;

	while (n) {
		ssize_t got = read(fd, p, n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		p += got;
		n -= (size_t)got;
	}
	return true;
}

static bool head_fits(const struct head *head, const struct dp_unwind_key *key, uint64_t size)
{
	if (head->magic != CACHE_MAGIC || head->version != CACHE_VERSION || head->row_size != sizeof(struct dp_unwind_row))
		return false;
	if (head->start != key->start || head->end != key->end || !head->nrules || head->nrules > DP_UNWIND_ROWS_MAX)
		return false;
	return head->n <= UINT32_MAX && size == sizeof(*head) + head->nrules * sizeof(struct dp_unwind_row) +
	                                                head->n * (sizeof(uint32_t) + sizeof(uint16_t));
}

static bool read_rows(int fd, const struct head *head, struct dp_unwind_rows *ret)
{
	ret->rule = malloc(head->nrules * sizeof(*ret->rule));
	ret->pc = malloc(head->n * sizeof(*ret->pc) + 1);
	ret->row = malloc(head->n * sizeof(*ret->row) + 1);
	if (!ret->rule || !ret->pc || !ret->row)
		return false;
	if (!read_all(fd, ret->rule, head->nrules * sizeof(*ret->rule)) || !read_all(fd, ret->pc, head->n * sizeof(*ret->pc)) ||
	    !read_all(fd, ret->row, head->n * sizeof(*ret->row)))
		return false;
	ret->n = ret->cap = head->n;
	ret->nrules = ret->cap_rules = head->nrules;
	return checksum_of(head, ret->rule, ret->pc, ret->row) == head->checksum;
}

bool dp_unwind_cache_load(const struct dp_unwind_key *key, struct dp_unwind_rows *ret)
{
	struct dp_unwind_rows rows = {0};
	char path[PATH_MAX];
	struct head head;
	struct stat st;
	dp_auto_close int fd = -1;

	if (!usable(key) || !path_of(key, path))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH))
		return false;
	if (!read_all(fd, &head, sizeof(head)) || !head_fits(&head, key, (uint64_t)st.st_size))
		return false;
	if (!read_rows(fd, &head, &rows)) {
		dp_unwind_rows_fini(&rows);
		return false;
	}
	dp_unwind_rows_fini(ret);
	*ret = rows;
	dp_unwind_cache_touch(fd, st.st_mtime);
	return true;
}

static bool make_dir(const char *dir)
{
	char path[PATH_MAX];
	size_t n = strlen(dir);

	if (mkdir(dir, 0700) == 0 || errno == EEXIST)
		return true;
	if (errno != ENOENT || n >= sizeof(path))
		return false;
	memcpy(path, dir, n + 1);
	for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		if (mkdir(path, 0700) && errno != EEXIST)
			return false;
		*p = '/';
	}
	return mkdir(path, 0700) == 0 || errno == EEXIST;
}

static bool write_all(int fd, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	while (n) {
		ssize_t put = write(fd, p, n);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return false;
		p += put;
		n -= (size_t)put;
	}
	return true;
}

static bool write_rows(int fd, const struct head *head, const struct dp_unwind_rows *rows)
{
	return write_all(fd, head, sizeof(*head)) && write_all(fd, rows->rule, rows->nrules * sizeof(*rows->rule)) &&
	       write_all(fd, rows->pc, rows->n * sizeof(*rows->pc)) && write_all(fd, rows->row, rows->n * sizeof(*rows->row));
}

/* Any new file, so that a program that is built again and again has no luck of its own. */
static bool is_chosen(void)
{
	struct timespec now;

	return !clock_gettime(CLOCK_MONOTONIC, &now) && now.tv_nsec % SELDOM == 0;
}

void dp_unwind_cache_store(const struct dp_unwind_key *key, const struct dp_unwind_rows *rows)
{
	struct head head = {.magic = CACHE_MAGIC,
	                    .version = CACHE_VERSION,
	                    .row_size = sizeof(struct dp_unwind_row),
	                    .start = key->start,
	                    .end = key->end,
	                    .n = rows->n,
	                    .nrules = rows->nrules};
	char path[PATH_MAX], temporary[PATH_MAX + 16];
	dp_auto_close int fd = -1;

	if (!usable(key) || !path_of(key, path) || !make_dir(key->dir))
		return;
	snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path);
	fd = mkostemp(temporary, O_CLOEXEC); /* mode 0600 */
	if (fd < 0)
		return;
	head.checksum = checksum_of(&head, rows->rule, rows->pc, rows->row);
	if (!write_rows(fd, &head, rows) || rename(temporary, path))
		unlink(temporary);
	if (is_chosen())
		dp_unwind_cache_trim(key->dir, DP_UNWIND_CACHE_BYTES);
}
