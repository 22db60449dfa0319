/* SPDX-License-Identifier: MIT */
#include "probes/unwind/unwind_cache_trim.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOUR 3600
#define DAY  (24 * HOUR)

struct file {
	char *name;
	time_t used;
	uint64_t size;
};

struct files {
	struct file *file;
	size_t n, capacity;
	uint64_t size; /* of all */
};

/* The order of use is the order of modification: file systems may not keep times of access. Once an hour is exact enough. */
void dp_unwind_cache_touch(int fd, time_t used)
{
	if (time(NULL) - used > HOUR)
		futimens(fd, NULL);
}

static void add(struct files *f, const char *name, const struct stat *st)
{
	if (f->n == f->capacity) {
		const size_t capacity = f->capacity ? 2 * f->capacity : 256;
		struct file *grown = realloc(f->file, capacity * sizeof(*grown));
		if (!grown)
			return;
		f->file = grown;
		f->capacity = capacity;
	}
	char *copy = strdup(name);
	if (!copy)
		return;
	f->file[f->n++] = (struct file){copy, st->st_mtime, (uint64_t)st->st_size};
	f->size += (uint64_t)st->st_size;
}

/* Nothing else in the directory is touched, whoever put it there. */
static void take(struct files *f, DIR *d, const char *name)
{
	struct stat st;
	const char *suffix = strstr(name, DP_UNWIND_CACHE_SUFFIX);
	if (!suffix || fstatat(dirfd(d), name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
		return;
	if (!strcmp(suffix, DP_UNWIND_CACHE_SUFFIX))
		add(f, name, &st);
	else if (suffix[sizeof(DP_UNWIND_CACHE_SUFFIX) - 1] == '.' && time(NULL) - st.st_mtime > DAY)
		unlinkat(dirfd(d), name, 0);
}

static int by_use(const void *x, const void *y)
{
	const struct file *a = x, *b = y;
	return (a->used > b->used) - (a->used < b->used);
}

static void remove_oldest(struct files *f, int dir, uint64_t left)
{
	qsort(f->file, f->n, sizeof(*f->file), by_use);
	for (size_t i = 0; i < f->n && f->size > left; i++)
		f->size -= unlinkat(dir, f->file[i].name, 0) ? 0 : f->file[i].size;
}

void dp_unwind_cache_trim(const char *dir, uint64_t most)
{
	struct files f = {0};
	DIR *d = opendir(dir);
	for (const struct dirent *e; d && (e = readdir(d));)
		take(&f, d, e->d_name);
	if (f.size > most)
		remove_oldest(&f, dirfd(d), most / 4 * 3);
	for (size_t i = 0; i < f.n; i++)
		free(f.file[i].name);
	free(f.file);
	if (d)
		closedir(d);
}
