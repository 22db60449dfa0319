/* SPDX-License-Identifier: MIT */
#include "session/traces/traces_files.h"

#include "base/cleanup.h"
#include "injector/tracee/proc/proc.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define FOLDER "dynprobe"

struct look {
	struct dp_trace_files *found;
	bool metadata, folder; /* of a trace in the directory itself */
};

static bool is_numbered(const char *name, const char *before)
{
	const size_t n = strlen(before), digits = strncmp(name, before, n) ? 0 : strspn(name + n, "0123456789");
	return digits && !name[n + digits];
}

static DIR *open_at(int dir, const char *name)
{
	const int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d && fd >= 0)
		close(fd);
	return d;
}

static void note_foreign(struct dp_trace_files *f, const char *name)
{
	if (!f->foreign[0])
		snprintf(f->foreign, sizeof(f->foreign), "%s", name);
}

static void add_size(int dir, const char *name, struct dp_trace_files *f)
{
	struct stat st;
	if (!fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode))
		f->bytes += (uint64_t)st.st_size;
}

static bool is_dots(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

/* The folder dynprobe/ of a trace has regular files only. */
static bool look_at_folder(int dir, struct dp_trace_files *f)
{
	dp_auto_closedir DIR *d = open_at(dir, FOLDER);
	bool classes = false;
	for (const struct dirent *e; d && (e = readdir(d));) {
		if (is_dots(e->d_name))
			continue;
		classes |= !strcmp(e->d_name, "classes.json");
		if (strncmp(e->d_name, "classes.json", 12) != 0 && strcmp(e->d_name, "names") != 0 &&
		    strncmp(e->d_name, ".", 1) != 0)
			note_foreign(f, e->d_name);
		add_size(dirfd(d), e->d_name, f);
	}
	return classes;
}

static bool is_of_trace(const char *name)
{
	return !strcmp(name, "metadata") || !strcmp(name, ".metadata") || is_numbered(name, "events_");
}

static void look_at(DIR *d, struct look *l, unsigned depth);

static bool look_at_piece(int dir, const char *name, struct look *l, unsigned depth)
{
	dp_auto_closedir DIR *d = !depth && (is_numbered(name, "") || !strcmp(name, ".next")) ? open_at(dir, name) : NULL;
	struct look inner = {.found = l->found};
	if (!d)
		return false;
	look_at(d, &inner, depth + 1);
	l->found->pieces += inner.folder;
	return inner.folder || !strcmp(name, ".next");
}

static void look_at(DIR *d, struct look *l, unsigned depth)
{
	for (const struct dirent *e; (e = readdir(d));) {
		if (is_dots(e->d_name))
			continue;
		if (!strcmp(e->d_name, FOLDER))
			l->folder = look_at_folder(dirfd(d), l->found);
		else if (is_of_trace(e->d_name))
			add_size(dirfd(d), e->d_name, l->found);
		else if (!look_at_piece(dirfd(d), e->d_name, l, depth))
			note_foreign(l->found, e->d_name);
	}
}

bool dp_trace_files_look(const char *path, struct dp_trace_files *ret)
{
	dp_auto_closedir DIR *d = open_at(AT_FDCWD, path);
	struct look l = {.found = ret};
	*ret = (struct dp_trace_files){0};
	if (d)
		look_at(d, &l, 0);
	return l.folder || ret->pieces;
}

/* ---- who uses it ----------------------------------------------------------------------------------------------------------- */

struct search {
	const char *within; /* the directory's path, with a slash behind it */
	pid_t found;
};

static bool has_open(pid_t pid, void *data)
{
	struct search *s = data;
	char folder[32], to[PATH_MAX];
	snprintf(folder, sizeof(folder), "/proc/%d/fd", pid);
	dp_auto_closedir DIR *d = pid == getpid() ? NULL : opendir(folder);
	for (const struct dirent *e; d && !s->found && (e = readdir(d));) {
		const ssize_t n = readlinkat(dirfd(d), e->d_name, to, sizeof(to) - 1);
		to[n > 0 ? n : 0] = '\0';
		if (!strncmp(to, s->within, strlen(s->within)))
			s->found = pid;
	}
	return !s->found;
}

pid_t dp_trace_files_user(const char *path)
{
	char real[PATH_MAX], within[PATH_MAX + 1];
	struct search s = {.within = within};
	if (!realpath(path, real))
		return 0;
	snprintf(within, sizeof(within), "%s/", real);
	return dp_proc_each(has_open, &s) ? s.found : 0;
}
