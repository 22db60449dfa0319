/* SPDX-License-Identifier: MIT */
#include "injector/tracee/exec/exec_files.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mntent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHANGES (IN_CREATE | IN_MOVED_TO | IN_MOVE_SELF | IN_DELETE_SELF | IN_ONLYDIR)

struct dp_exec_files {
	int group, directories; /* fanotify; inotify */
	const char *const *path;
	size_t n;
	bool modules; /* any open of a file asks, and a path may lead nowhere */
};

static void watch_directory(const struct dp_exec_files *f, const char *path)
{
	char folder[PATH_MAX];
	const char *slash = strrchr(path, '/');
	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
	if (inotify_add_watch(f->directories, folder, CHANGES) < 0)
		return; /* then a new file of that name is not seen */
}

/* The directory of the name, and that of the file that the name leads to. */
static void watch_directories(const struct dp_exec_files *f, const char *path)
{
	dp_auto_free char *real = realpath(path, NULL);
	watch_directory(f, path);
	if (real)
		watch_directory(f, real);
}

static struct dp_error *mark(const struct dp_exec_files *f, const char *path)
{
	struct stat st;
	if (stat(path, &st))
		return dp_error_sys(DP_TAG_EXEC, "cannot watch the program %s", path);
	if (!S_ISREG(st.st_mode))
		return dp_error(DP_TAG_EXEC, "cannot watch %s: it is not a file", path);
	if (fanotify_mark(f->group, FAN_MARK_ADD, f->modules ? FAN_OPEN_PERM : FAN_OPEN_EXEC_PERM, AT_FDCWD, path) == 0)
		return NULL;
	if (errno == EINVAL)
		return dp_error(DP_TAG_PERMISSION,
		                "this kernel cannot hold the start of a program (fanotify's FAN_OPEN_EXEC_PERM: Linux 5.0 with "
		                "CONFIG_FANOTIFY_ACCESS_PERMISSIONS); name processes that run already, with --pid NAME");
	return dp_error_sys(DP_TAG_SYS, "cannot watch the program %s", path);
}

void dp_exec_files_renew(struct dp_exec_files *f)
{
	char events[4096];
	while (read(f->directories, events, sizeof(events)) > 0)
		; /* which name it was does not matter */
	for (size_t i = 0; i < f->n; i++) {
		watch_directories(f, f->path[i]);
		dp_error_destroy(mark(f, f->path[i])); /* it may come later */
	}
}

/* Those that cannot be marked (proc, for example) have no programs. */
struct dp_error *dp_exec_files_mark_all(const struct dp_exec_files *f)
{
	dp_auto_fclose FILE *mounts = setmntent("/proc/self/mounts", "re");
	char text[2 * PATH_MAX];
	struct mntent m;
	bool any = false;
	while (mounts && getmntent_r(mounts, &m, text, sizeof(text)))
		any |= !fanotify_mark(f->group, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, FAN_OPEN_EXEC_PERM, AT_FDCWD, m.mnt_dir);
	return any ? NULL : dp_error_sys(DP_TAG_PERMISSION, "no file system can be watched for programs that are executed");
}

static struct dp_error *create_steps(struct dp_exec_files *f)
{
	f->directories = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (f->directories < 0)
		return dp_error_sys(DP_TAG_SYS, "inotify");
	for (size_t i = 0; i < f->n; i++) {
		watch_directories(f, f->path[i]); /* first: a file that is replaced now is seen */
		struct dp_error *err = mark(f, f->path[i]);
		if (err && !f->modules)
			return err;
		dp_error_destroy(err);
	}
	return NULL;
}

void dp_exec_files_add(const struct dp_exec_files *f, const char *path)
{
	dp_error_destroy(mark(f, path));
}

struct dp_error *dp_exec_files_create(int group, const char *const *path, size_t n, bool modules, struct dp_exec_files **ret)
{
	struct dp_exec_files *f = malloc(sizeof(*f));
	if (!f)
		return dp_error_nomem();
	*f = (struct dp_exec_files){.group = group, .directories = -1, .path = path, .n = n, .modules = modules};
	struct dp_error *err = create_steps(f);
	if (err)
		dp_exec_files_destroy(f);
	else
		*ret = f;
	return err;
}

struct dp_exec_files *dp_exec_files_destroy(struct dp_exec_files *f)
{
	if (!f)
		return NULL;
	if (f->directories >= 0)
		close(f->directories);
	free(f);
	return NULL;
}

int dp_exec_files_fd(const struct dp_exec_files *f)
{
	return f->directories;
}
