/* SPDX-License-Identifier: MIT */
/*
 * A path in maps is only a hint: it may be from another mount namespace, or the file was replaced or deleted. So every candidate
 * is opened and its inode compared with the mapping's. The device is not compared, because btrfs and overlayfs report different
 * ones in maps and stat.
 */
#include "base/cleanup.h"
#include "base/regular.h"
#include "probes/image/module.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* Opens `prefix` + `path` if its inode is `inode` (0: any). Sets *seen if the path exists but is another file. */
static int open_checked(const char *prefix, const char *path, uint64_t inode, bool *seen)
{
	dp_auto_free char *full = NULL;
	struct stat st;
	if (asprintf(&full, "%s%s", prefix, path) < 0) {
		full = NULL;
		return -1;
	}
	int fd = dp_open_regular(full);
	if (fd < 0) {
		*seen |= errno == ENXIO; /* not a regular file */
		return -1;
	}
	if (fstat(fd, &st) == 0 && (!inode || st.st_ino == inode))
		return fd;
	close(fd);
	*seen = true;
	return -1;
}

static int open_path(const struct dp_map *map, const char *root, bool *replaced)
{
	bool changed = false;
	dp_auto_free char *clean = dp_map_clean_path(map->path, &changed);
	const char *const paths[] = {clean, changed ? map->path : NULL};
	const char *const roots[] = {root, *root ? "" : NULL};
	for (size_t i = 0; i < 2; i++)
		for (size_t j = 0; j < 2; j++) {
			if (!paths[j] || !roots[i] || paths[j][0] != '/')
				continue;
			int fd = open_checked(roots[i], paths[j], map->inode, replaced);
			if (fd >= 0)
				return fd;
		}
	return -1;
}

static int open_through_proc(const struct dp_map *map, int pid)
{
	char path[128];
	bool ignored;
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	int fd = map->inode ? open_checked("", path, map->inode, &ignored) : -1;
	if (fd >= 0)
		return fd;
	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", pid, (unsigned long long)map->start.v,
	         (unsigned long long)map->end.v);
	return open_checked("", path, 0, &ignored);
}

struct dp_error *dp_module_open(const struct dp_map *map, const char *root, int pid, int *fd)
{
	bool replaced = false;
	*fd = open_path(map, root, &replaced);
	int sys = errno;
	if (*fd < 0 && pid)
		*fd = open_through_proc(map, pid);
	if (*fd >= 0)
		return NULL;
	if (replaced || strstr(map->path, " (deleted)"))
		return dp_error(
		        DP_TAG_BAD_ELF,
		        "the file '%s' was replaced or deleted after the target mapped it, and only root can open the old one; "
		        "run dynprobe as root, or restart the target",
		        map->path);
	errno = sys;
	return dp_error_sys(DP_TAG_BAD_ELF, "cannot open '%s', which the target has mapped", map->path);
}
