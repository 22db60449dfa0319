/* SPDX-License-Identifier: MIT */
/*
 * The names by which users mean a module. Further names of the executable: redis-server may be a link to redis-check-rdb, python3
 * one to python3.11. They come from the process and are untrusted: a name that a module has already stays that module's.
 */
#include "base/cleanup.h"
#include "base/path.h"
#include "probes/image/image_internal.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Users type sonames: libsqlite3.so.0 means libsqlite3.so.0.8.6, and libssl.so means libssl.so.3. */
static bool is_soname_of(const char *typed, const char *name)
{
	const size_t n = strlen(typed);
	return strstr(typed, ".so") && !strncmp(typed, name, n) && name[n] == '.';
}

/* Or they leave out what follows the name: libc means libc.so.6 (of older glibc: libc-2.31.so), libssl means libssl.so.3. */
static bool is_library_of(const char *typed, const char *name)
{
	const size_t n = strlen(typed);
	if (strncmp(typed, "lib", 3) != 0 || strncmp(typed, name, n) != 0)
		return false;
	const size_t version = name[n] == '-' ? 1 + strspn(name + n + 1, "0123456789.") : 0;
	const char *rest = version > 1 ? name + n + version - 1 : name + n;
	return !strncmp(rest, ".so", 3) && (!rest[3] || rest[3] == '.');
}

/* a.out is DTrace's name for the executable. */
static bool is_called(const struct dp_module *m, const char *name)
{
	for (size_t i = 0; m->executable && i < DP_CALLED_MAX; i++)
		if (m->called[i] && !strcmp(m->called[i], name))
			return true;
	return m->executable && !strcmp(name, "a.out");
}

static bool is_named(const char *typed, const char *name, const char *path)
{
	return !strcmp(typed, name) || !strcmp(typed, path) || is_soname_of(typed, name) || is_library_of(typed, name);
}

static bool fits_pattern(const char *typed, const char *name, const char *path)
{
	return strpbrk(typed, "*?[") && !fnmatch(typed, strchr(typed, '/') ? path : name, 0);
}

bool dp_module_matches(const struct dp_module *m, const char *name)
{
	if (!name)
		return !m->vdso;
	return is_named(name, m->name, m->path) || is_called(m, name) || (!m->vdso && fits_pattern(name, m->name, m->path));
}

bool dp_module_path_matches(const char *path, const char *name)
{
	return is_named(name, dp_path_last(path), path) || fits_pattern(name, dp_path_last(path), path);
}

static bool is_taken(const struct dp_image *image, const char *name)
{
	for (size_t i = 0; i < image->nmodules; i++)
		if (dp_module_matches(image->module[i], name))
			return true;
	return false;
}

void dp_image_call(struct dp_image *image, const char *name)
{
	struct dp_module *m = image->nmodules ? image->module[0] : NULL;
	dp_auto_free char *last = strdup(dp_path_last(name));
	for (size_t i = 0; m && last && *last && !is_taken(image, last) && i < DP_CALLED_MAX; i++)
		if (!m->called[i])
			m->called[i] = dp_take(last, NULL);
}

/* Reads the first line or argument; "" if there is none. */
static void read_first(int pid, const char *what, char *buf, size_t size)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/%s", pid, what);
	dp_auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);
	buf[n > 0 ? n : 0] = 0;
	buf[strcspn(buf, "\n")] = 0;
}

/* Does that path, or that name beside the executable, lead to the executable's file? Then it is what people know it by. */
static bool is_link_to(const struct dp_module *m, const char *name)
{
	dp_auto_free char *path = NULL;
	struct stat st;
	const int dir = *name == '/' ? 0 : (int)(m->name - m->path);
	if (m->path[0] != '/' || (*name != '/' && strchr(name, '/')) ||
	    asprintf(&path, "%s%.*s%s", m->root, dir, m->path, name) < 0) {
		path = NULL;
		return false;
	}
	return !stat(path, &st) && S_ISREG(st.st_mode) && st.st_ino == m->inode;
}

static void note_started(struct dp_image *image, const char *name)
{
	struct dp_module *m = image->nmodules ? image->module[0] : NULL;
	const char *last = dp_path_last(name);
	if (m && !m->started && *last && strcmp(last, m->name) && is_link_to(m, name))
		m->started = strdup(last);
}

void dp_image_started_as(struct dp_image *image, const char *args, const char *comm)
{
	dp_auto_free char *word = strndup(args + (*args == '-'), strcspn(args + (*args == '-'), " "));
	dp_image_call(image, comm);
	if (word) {
		dp_image_call(image, word);
		note_started(image, word);
	}
	note_started(image, comm);
}

void dp_image_call_as_started(struct dp_image *image)
{
	char comm[64] = "", args[4096] = "";
	if (!image->pid)
		return;
	read_first(image->pid, "comm", comm, sizeof(comm));
	read_first(image->pid, "cmdline", args, sizeof(args));
	dp_image_started_as(image, args, comm);
}
