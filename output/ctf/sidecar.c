/* SPDX-License-Identifier: MIT */
#include "output/ctf/sidecar.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct dp_sidecar {
	struct dp_sidecar_of of;
	int dir, fd; /* the folder; the file of names */
	struct dp_buf lines;
	struct dp_sidecar_names *names;
};

static bool write_all(int fd, const struct dp_buf *b)
{
	for (size_t done = 0; done < b->len;) {
		const ssize_t got = write(fd, b->data + done, b->len - done);
		if (got < 0 && errno != EINTR)
			return false;
		done += got < 0 ? 0 : (size_t)got;
	}
	return true;
}

static int new_file(int dir, const char *name)
{
	return openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

struct dp_error *dp_sidecar_renew(struct dp_sidecar *s)
{
	static const char next[] = ".next";
	struct dp_error *err = NULL;
	struct dp_buf text;
	dp_buf_init(&text);
	dp_sidecar_put_classes(&text, &s->of);
	dp_auto_close int fd = new_file(s->dir, next);
	if (text.failed)
		err = dp_error_nomem();
	else if (fd < 0 || !write_all(fd, &text) || renameat(s->dir, next, s->dir, DP_SIDECAR_CLASSES))
		err = dp_error_sys(DP_TAG_OUTPUT, "cannot write the trace's " DP_SIDECAR_DIR "/" DP_SIDECAR_CLASSES);
	dp_buf_fini(&text);
	return err;
}

static void destroy(struct dp_sidecar *s)
{
	if (s->dir >= 0)
		close(s->dir);
	if (s->fd >= 0)
		close(s->fd);
	dp_sidecar_names_destroy(s->names);
	dp_buf_fini(&s->lines);
	free(s);
}

static struct dp_error *create_files(struct dp_sidecar *s)
{
	if (mkdirat(s->of.dir, DP_SIDECAR_DIR, 0700))
		return dp_error_sys(DP_TAG_OUTPUT, "cannot create the trace's folder " DP_SIDECAR_DIR);
	s->dir = openat(s->of.dir, DP_SIDECAR_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	s->fd = s->dir < 0 ? -1 : new_file(s->dir, DP_SIDECAR_NAMES);
	if (s->fd < 0)
		return dp_error_sys(DP_TAG_OUTPUT, "cannot create the trace's " DP_SIDECAR_DIR "/" DP_SIDECAR_NAMES);
	return dp_sidecar_renew(s);
}

void dp_sidecar_remove(int dir)
{
	unlinkat(dir, DP_SIDECAR_DIR "/" DP_SIDECAR_CLASSES, 0);
	unlinkat(dir, DP_SIDECAR_DIR "/" DP_SIDECAR_NAMES, 0);
	unlinkat(dir, DP_SIDECAR_DIR, AT_REMOVEDIR);
}

struct dp_error *dp_sidecar_create(const struct dp_sidecar_of *of, struct dp_sidecar **ret)
{
	struct dp_sidecar *s = calloc(1, sizeof(*s));
	if (!s)
		return dp_error_nomem();
	s->of = *of;
	s->dir = s->fd = -1;
	dp_buf_init(&s->lines);
	s->names = dp_sidecar_names_create(&s->lines);
	struct dp_error *err = s->names ? create_files(s) : dp_error_nomem();
	if (!err) {
		*ret = s;
		return NULL;
	}
	if (s->dir >= 0)
		dp_sidecar_remove(of->dir);
	destroy(s);
	return err;
}

void dp_sidecar_thread(struct dp_sidecar *s, const struct dp_event *e)
{
	dp_sidecar_names_thread(s->names, e);
}

void dp_sidecar_event(struct dp_sidecar *s, const struct dp_event *e)
{
	dp_sidecar_names_event(s->names, s->of.classes[e->probe].fields, e);
}

struct dp_error *dp_sidecar_flush(struct dp_sidecar *s)
{
	struct dp_error *err = NULL;
	if (s->lines.failed)
		err = dp_error_nomem();
	else if (!write_all(s->fd, &s->lines))
		err = dp_error_sys(DP_TAG_OUTPUT, "cannot write the trace's " DP_SIDECAR_DIR "/" DP_SIDECAR_NAMES);
	s->lines.len = 0;
	return err;
}

struct dp_error *dp_sidecar_close(struct dp_sidecar *s)
{
	if (!s)
		return NULL;
	if (!dp_sidecar_names_failed(s->names))
		dp_buf_printf(&s->lines, "{\"type\":\"end\"}\n");
	struct dp_error *err = dp_sidecar_flush(s);
	destroy(s);
	return err;
}
