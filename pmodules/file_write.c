/* SPDX-License-Identifier: MIT */
/* The file on the disk: written beside its place and renamed. */
#include "base/cleanup.h"
#include "pmodules/file_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static struct dp_error *put_all(int fd, const struct dp_buf *b, const char *path)
{
	for (size_t done = 0; done < b->len;) {
		const ssize_t n = write(fd, b->data + done, b->len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return dp_error_sys(DP_TAG_OUTPUT, "cannot write the snapshot to %s", path);
		done += (size_t)n;
	}
	return NULL;
}

/* /dev/stdout, a pipe: nothing that a file could take the place of. */
static struct dp_error *write_through(const struct dp_buf *b, const char *path)
{
	dp_auto_close int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? dp_error_sys(DP_TAG_OUTPUT, "cannot write the snapshot to %s", path) : put_all(fd, b, path);
}

static struct dp_error *write_beside(const struct dp_buf *b, const char *path, char *beside)
{
	dp_auto_close int fd = mkostemp(beside, O_CLOEXEC); /* 0600: it holds the program's memory */
	if (fd < 0)
		return dp_error_sys(DP_TAG_OUTPUT, "cannot make a file beside %s", path);
	struct dp_error *err = put_all(fd, b, path);
	if (!err && rename(beside, path))
		err = dp_error_sys(DP_TAG_OUTPUT, "cannot rename the snapshot to %s", path);
	if (err)
		unlink(beside);
	return err;
}

static struct dp_error *write_to(struct dp_snapshot *s, const char *path, bool through)
{
	struct dp_buf b = {0};
	dp_auto_free char *beside = NULL;
	if (asprintf(&beside, "%s.XXXXXX", path) < 0)
		return dp_error(DP_TAG_NOMEM, "out of memory for the snapshot's file");
	DP_TRY(dp_snapshot_write_bytes(s, &b));
	struct dp_error *err = through ? write_through(&b, path) : write_beside(&b, path, beside);
	dp_buf_fini(&b);
	return err;
}

struct dp_error *dp_snapshot_write(struct dp_snapshot *s, const char *path)
{
	struct stat st;
	return write_to(s, path, !stat(path, &st) && !S_ISREG(st.st_mode));
}

struct dp_error *dp_snapshot_write_beside(struct dp_snapshot *s, const char *path)
{
	return write_to(s, path, false);
}
