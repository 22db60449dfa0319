/* SPDX-License-Identifier: MIT */
/*
 * Signals are pending in a descriptor (signals.h). A write that blocks (a pager that waits, a stopped terminal) would delay them,
 * and keep the probes in the process. So writes never block: the pipe or terminal is opened again with O_NONBLOCK (the descriptor
 * that we got shares its flags with other processes), and while it is full `leave` is asked. Once `leave` returns true, output is
 * buffered and the run goes on to its end. dp_outlet_settle() writes the rest after the target is clean.
 */
#include "cli/run/outlet.h"

#include "base/buf.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK_MS 20

struct dp_outlet {
	FILE *file;
	int fd;
	bool socket, keeps; /* keeps: output is buffered in `held` */
	bool unread;        /* the reader has gone */
	struct dp_buf held;
	dp_outlet_leave_fn leave;
	void *data;
};

static ssize_t try(const struct dp_outlet *o, const char *bytes, size_t n)
{
	ssize_t got;
	do
		got = o->socket ? send(o->fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL) : write(o->fd, bytes, n);
	while (got < 0 && errno == EINTR);
	return got;
}

/* Bytes written before the reader stalled and the run had to end; -1: the reader is gone. */
static ssize_t push(const struct dp_outlet *o, const char *bytes, size_t n)
{
	size_t done = 0;
	while (done < n) {
		const ssize_t got = try(o, bytes + done, n - done);
		if (got < 0 && errno != EAGAIN)
			return -1;
		done += got < 0 ? 0 : (size_t)got;
		if (got >= 0)
			continue;
		if (o->leave(o->data))
			break;
		poll(&(struct pollfd){.fd = o->fd, .events = POLLOUT}, 1, LOOK_MS);
	}
	return (ssize_t)done;
}

static ssize_t cookie_write(void *cookie, const char *bytes, size_t n)
{
	struct dp_outlet *o = cookie;
	const ssize_t done = o->keeps ? 0 : push(o, bytes, n);
	o->unread |= done < 0 && errno == EPIPE;
	if (done < 0)
		return 0; /* stdio takes this as an error */
	if ((size_t)done < n) {
		o->keeps = true;
		dp_buf_put(&o->held, bytes + done, n - (size_t)done);
	}
	return o->held.failed ? 0 : (ssize_t)n;
}

/* The same pipe or terminal, nonblocking. Not for regular files: a second opening has its own position. */
static int open_again(int fd, const struct stat *st)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	const int own = S_ISFIFO(st->st_mode) || isatty(fd) ? open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
	return own >= 0 ? own : fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

struct dp_error *dp_outlet_create(FILE *to, dp_outlet_leave_fn leave, void *data, struct dp_outlet **ret)
{
	struct stat st;
	*ret = NULL;
	if (fstat(fileno(to), &st) || S_ISREG(st.st_mode))
		return NULL;
	struct dp_outlet *o = calloc(1, sizeof(*o));
	if (!o)
		return dp_error_nomem();
	*o = (struct dp_outlet){.leave = leave, .data = data, .socket = S_ISSOCK(st.st_mode), .fd = open_again(fileno(to), &st)};
	dp_buf_init(&o->held);
	o->file = o->fd >= 0 ? fopencookie(o, "w", (cookie_io_functions_t){.write = cookie_write}) : NULL;
	if (!o->file) {
		dp_outlet_destroy(o);
		return dp_error_sys(DP_TAG_OUTPUT, "opening the output");
	}
	if (to == stderr)
		setvbuf(o->file, NULL, _IONBF, 0);
	*ret = o;
	return NULL;
}

bool dp_outlet_is_unread(const struct dp_outlet *o)
{
	struct pollfd p = {.fd = o->fd};
	return o->unread || (poll(&p, 1, 0) == 1 && p.revents & POLLERR);
}

FILE *dp_outlet_file(struct dp_outlet *o)
{
	return o->file;
}

size_t dp_outlet_settle(struct dp_outlet *o)
{
	fflush(o->file);
	const ssize_t done = push(o, (const char *)o->held.data, o->held.len);
	const size_t left = done < 0 ? 0 : o->held.len - (size_t)done; /* without a reader nothing is lost */
	dp_buf_fini(&o->held);
	dp_buf_init(&o->held);
	o->keeps = left > 0;
	return left;
}

struct dp_outlet *dp_outlet_destroy(struct dp_outlet *o)
{
	if (!o)
		return NULL;
	o->keeps = true;
	if (o->file)
		fclose(o->file);
	if (o->fd >= 0)
		close(o->fd);
	dp_buf_fini(&o->held);
	free(o);
	return NULL;
}
