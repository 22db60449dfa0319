/* SPDX-License-Identifier: MIT */
#include "probes/image/perf_map.h"

#include "base/cleanup.h"
#include "probes/generated/jitdump.h"
#include "probes/image/image_internal.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PIECE    (64u << 10)
#define FILE_MAX (UINT64_C(256) << 20) /* of a larger file only this much is read */
#define RETRY_NS UINT64_C(20000000) /* for a process that has no map */
#define DUMP_NS  (10 * RETRY_NS)    /* for one that has no dump: its mappings may be many */

struct file {
	int fd; /* kept: the names are there when the process has ended, too; -1: none */
	dev_t dev;
	ino_t ino;
	uint64_t offset; /* what was read */
	bool is_dump;
	bool in_long_line;      /* of a map */
	struct dp_jitdump dump; /* of a dump */
	uint64_t tried_ns; /* when there was no file */
	struct dp_perf_names *names;
	char name[32];
};

struct dp_perf_map {
	struct file map, dump;
};

static void close_file(struct file *m)
{
	if (m->fd >= 0)
		close(m->fd);
	dp_perf_names_destroy(m->names);
}

struct dp_perf_map *dp_perf_map_destroy(struct dp_perf_map *m)
{
	if (!m)
		return NULL;
	close_file(&m->map);
	close_file(&m->dump);
	free(m);
	return NULL;
}

/* ---- the file ------------------------------------------------------------------------------------------------------------- */

struct perf_owner { /* of the process */
	long pid; /* in its own namespace */
	uid_t uid;
};

/* The last number of "NStgid:" is the innermost namespace's; the second of "Uid:" is the effective one. */
static bool owner_of(int pid, struct perf_owner *ret)
{
	char path[64], *line = NULL;
	size_t size = 0;
	unsigned found = 0;
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	FILE *f = fopen(path, "re");
	while (f && getline(&line, &size, f) > 0) {
		if (!strncmp(line, "Uid:", 4))
			found |= sscanf(line, "Uid: %*u %u", &ret->uid) == 1;
		if (strncmp(line, "NStgid:", 7) != 0)
			continue;
		const char *last = strrchr(line, '\t');
		ret->pid = last ? strtol(last, NULL, 10) : 0;
		found |= ret->pid > 0 ? 2 : 0;
	}
	free(line);
	if (f)
		fclose(f);
	return found == 3;
}

static bool may_read(int at, const struct perf_owner *owner, uint64_t inode)
{
	struct stat st;
	return at >= 0 && !fstat(at, &st) && S_ISREG(st.st_mode) && (!st.st_uid || st.st_uid == owner->uid) &&
	       (!inode || st.st_ino == inode);
}

static int reopen(int at)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
	return open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

/* No links, and nothing but regular files: to open a fifo or a device would be an action. */
static int open_in_tmp(const struct dp_image *image, const struct perf_owner *owner, const char *name)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/root/tmp", image->pid);
	dp_auto_close int dir = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	dp_auto_close int at = dir < 0 ? -1 : openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	return may_read(at, owner, 0) ? reopen(at) : -1;
}

/* A file that the process has mapped, by its path there: links lead nowhere out of the process's own root. */
static int open_mapped(const struct dp_image *image, const struct perf_owner *owner, const char *path, uint64_t inode)
{
	const struct open_how how = {.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
	char root[64];
	snprintf(root, sizeof(root), "/proc/%d/root", image->pid);
	dp_auto_close int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	dp_auto_close int at = dir < 0 ? -1 : (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
	return may_read(at, owner, inode) ? reopen(at) : -1;
}

/* A runtime maps a page of its dump, executable, so that perf finds the file, wherever it is. */
static int open_marked(const struct dp_image *image, const struct perf_owner *owner, const char *name)
{
	char maps[64], *line = NULL;
	size_t size = 0;
	int fd = -1, path;
	unsigned long inode;
	snprintf(maps, sizeof(maps), "/proc/%d/maps", image->pid);
	FILE *f = fopen(maps, "re");
	while (f && fd < 0 && getline(&line, &size, f) > 0) {
		line[strcspn(line, "\n")] = 0;
		if (sscanf(line, "%*x-%*x %*2cx%*c %*x %*x:%*x %lu %n", &inode, &path) != 1 || line[path] != '/')
			continue;
		if (!strcmp(strrchr(line, '/') + 1, name))
			fd = open_mapped(image, owner, line + path, inode);
	}
	free(line);
	if (f)
		fclose(f);
	return fd;
}

static void start_over(struct file *m)
{
	dp_perf_names_destroy(m->names);
	m->names = dp_perf_names_create();
	m->offset = 0;
	m->in_long_line = false;
	m->dump = (struct dp_jitdump){0};
}

/* Opens the file, unless it is the one that is open. False: nothing changed. */
static bool open_file(const struct dp_image *image, struct file *m)
{
	struct perf_owner owner;
	struct stat st;
	char name[sizeof(m->name)];
	if (!owner_of(image->pid, &owner))
		return false;
	snprintf(name, sizeof(name), m->is_dump ? "jit-%ld.dump" : "perf-%ld.map", owner.pid);
	int fd = m->is_dump ? open_marked(image, &owner, name) : -1;
	if (fd < 0)
		fd = open_in_tmp(image, &owner, name);
	if (fd < 0)
		return false;
	if (fstat(fd, &st) || (m->fd >= 0 && st.st_dev == m->dev && st.st_ino == m->ino)) {
		close(fd);
		return false;
	}
	if (m->fd >= 0)
		close(m->fd);
	m->fd = fd;
	m->dev = st.st_dev;
	m->ino = st.st_ino;
	memcpy(m->name, name, sizeof(name));
	start_over(m);
	return true;
}

/* ---- reading -------------------------------------------------------------------------------------------------------------- */

/* Returns how much of the piece was used. A line that fills a whole piece is no name. */
static size_t use_lines(struct file *m, const char *piece, size_t n)
{
	size_t skipped = 0;
	if (m->in_long_line) {
		const char *end = memchr(piece, '\n', n);
		if (!end)
			return n;
		m->in_long_line = false;
		skipped = (size_t)(end + 1 - piece);
	}
	const size_t used = skipped + dp_perf_names_add(m->names, piece + skipped, n - skipped);
	if (used || n < PIECE)
		return used;
	m->in_long_line = true;
	return n;
}

static size_t use(struct file *m, const char *piece, size_t n)
{
	return m->is_dump ? dp_jitdump_add(&m->dump, m->names, piece, n) : use_lines(m, piece, n);
}

/* Reads what was added. False: nothing was. */
static bool read_on(struct file *m)
{
	struct stat st;
	const uint64_t before = m->offset;
	char *piece;
	if (m->fd < 0 || fstat(m->fd, &st))
		return false;
	if ((uint64_t)st.st_size < m->offset)
		start_over(m);
	const uint64_t end = (uint64_t)st.st_size < FILE_MAX ? (uint64_t)st.st_size : FILE_MAX;
	if (!m->names || end <= m->offset || !(piece = malloc(PIECE)))
		return false;
	while (m->offset < end) {
		const ssize_t n = pread(m->fd, piece, PIECE, (off_t)m->offset);
		const size_t used = n > 0 ? use(m, piece, (size_t)n) : 0;
		m->offset += used;
		if (!used)
			break;
	}
	free(piece);
	return m->offset != before;
}

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool is_replaced(const struct file *m)
{
	struct stat st;
	return m->fd >= 0 && !fstat(m->fd, &st) && !st.st_nlink;
}

/* Another file may be there now: none was before, or ours was removed. Not asked too often. */
static bool has_other_file(const struct dp_image *image, struct file *m)
{
	const uint64_t now = now_ns();
	if ((m->fd >= 0 && !is_replaced(m)) || (m->tried_ns && now - m->tried_ns < (m->is_dump ? DUMP_NS : RETRY_NS)))
		return false;
	const bool found = open_file(image, m);
	m->tried_ns = found ? 0 : now;
	return found;
}

static struct dp_perf_map *map_of(struct dp_image *image)
{
	if (!image->perf_map && image->pid > 0)
		image->perf_map = calloc(1, sizeof(*image->perf_map));
	else
		return image->perf_map;
	if (image->perf_map) {
		image->perf_map->map.fd = image->perf_map->dump.fd = -1;
		image->perf_map->dump.is_dump = true;
	}
	return image->perf_map;
}

static bool find(struct dp_image *image, struct file *m, uint64_t addr, struct dp_perf_name *ret)
{
	if (m->names && dp_perf_names_at(m->names, addr, ret))
		return true;
	bool more = read_on(m);
	if (has_other_file(image, m))
		more |= read_on(m);
	return more && dp_perf_names_at(m->names, addr, ret);
}

bool dp_perf_map_find(struct dp_image *image, dp_addr addr, struct dp_perf_name *ret, const char **file)
{
	struct dp_perf_map *m = map_of(image);
	if (!m)
		return false;
	*file = m->map.name;
	if (find(image, &m->map, addr.v, ret))
		return true;
	*file = m->dump.name;
	return find(image, &m->dump, addr.v, ret);
}

void dp_image_perf_inherit(struct dp_image *to, struct dp_image *from)
{
	if (to->perf_map || to->pid != from->pid)
		return;
	to->perf_map = from->perf_map;
	from->perf_map = NULL;
}
