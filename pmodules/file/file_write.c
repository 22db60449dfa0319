/* SPDX-License-Identifier: MIT */
/* Files on disk: written under a temporary name next to the target, then renamed. */
#include "base/cleanup.h"
#include "pmodules/file/file_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

static struct dp_error *put_all(int fd, const struct dp_file_bytes *b, const char *path)
{
	for (size_t done = 0; done < b->n;) {
		const ssize_t n = write(fd, (const uint8_t *)b->bytes + done, b->n - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return dp_error_sys(DP_TAG_OUTPUT, "cannot write the %s to %s", b->what, path);
		done += (size_t)n;
	}
	return NULL;
}

/* For /dev/stdout, pipes and other files that must not be replaced. */
static struct dp_error *write_through(const struct dp_file_bytes *b, const char *path)
{
	dp_auto_close int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? dp_error_sys(DP_TAG_OUTPUT, "cannot write the %s to %s", b->what, path) : put_all(fd, b, path);
}

struct dp_error *dp_file_put_beside(const struct dp_file_bytes *b, const char *path)
{
	dp_auto_free char *beside = NULL;
	if (asprintf(&beside, "%s.XXXXXX", path) < 0)
		return dp_error_nomem();
	dp_auto_close int fd = mkostemp(beside, O_CLOEXEC); /* 0600: it contains the program's memory */
	if (fd < 0)
		return dp_error_sys(DP_TAG_OUTPUT, "cannot create a temporary file next to %s", path);
	struct dp_error *err = put_all(fd, b, path);
	if (!err && rename(beside, path))
		err = dp_error_sys(DP_TAG_OUTPUT, "cannot rename the %s to %s", b->what, path);
	if (err)
		unlink(beside);
	return err;
}

/* Replaces the target of a symbolic link, not the link: /dev/stdout is one. */
struct dp_error *dp_file_put(const struct dp_file_bytes *b, const char *path)
{
	struct stat st;
	const bool there = !stat(path, &st);
	dp_auto_free char *real = there && S_ISREG(st.st_mode) ? realpath(path, NULL) : NULL;
	return there && !real ? write_through(b, path) : dp_file_put_beside(b, real ? real : path);
}

static struct dp_error *write_to(struct dp_snapshot *s, const char *path,
                                 struct dp_error *(*put)(const struct dp_file_bytes *, const char *))
{
	struct dp_buf b = {0};
	DP_TRY(dp_snapshot_write_bytes(s, &b));
	struct dp_error *err = put(&(struct dp_file_bytes){b.data, b.len, "snapshot"}, path);
	dp_buf_fini(&b);
	return err;
}

struct dp_error *dp_snapshot_write(struct dp_snapshot *s, const char *path)
{
	return write_to(s, path, dp_file_put);
}

struct dp_error *dp_snapshot_write_beside(struct dp_snapshot *s, const char *path)
{
	return write_to(s, path, dp_file_put_beside);
}

/* Does not open a pipe or a device before there is data: opening may block, and readers would notice. */
static struct dp_error *check_special(const char *path, const struct stat *st)
{
	if (S_ISDIR(st->st_mode))
		return dp_error(DP_TAG_OUTPUT, "cannot write the snapshot to %s: it is a directory; name a file in it", path);
	return access(path, W_OK) ? dp_error_sys(DP_TAG_OUTPUT, "cannot write the snapshot to %s", path) : NULL;
}

struct dp_error *dp_snapshot_check_place(const char *path)
{
	struct stat st;
	dp_auto_free char *beside = NULL;
	if (path && !stat(path, &st) && !S_ISREG(st.st_mode))
		return check_special(path, &st);
	if (asprintf(&beside, "%s.XXXXXX", path ? path : ".dynprobe") < 0)
		return dp_error_nomem();
	dp_auto_close int fd = mkostemp(beside, O_CLOEXEC);
	if (fd >= 0)
		return unlink(beside) ? dp_error_sys(DP_TAG_OUTPUT, "cannot remove %s", beside) : NULL;
	if (path)
		return dp_error_sys(DP_TAG_OUTPUT, "cannot create a temporary file next to %s", path);
	return dp_error_sys(DP_TAG_OUTPUT, "cannot create the snapshot in the current directory");
}
