/* SPDX-License-Identifier: MIT */
/*
 * Signals wait in a descriptor (signals.h), so a write that blocks, since a pager has enough or a terminal was stopped, would
 * keep them from being answered, and the probes in the process. So nothing here blocks: the pipe or terminal is opened once more
 * without blocking (the descriptor that we were given shares its flags with others), and while it is full `leave` is asked. When
 * it says so, what is written from then on is kept, and the run goes on to its end. dp_outlet_settle() does the rest, with the
 * target left.
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
	bool socket, keeps; /* keeps: everything waits in `held` */
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

/* How many bytes were written before the reader stalled and the run had to end; -1: not to be written at all. */
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
	if (done < 0)
		return 0; /* an error, to stdio */
	if ((size_t)done < n) {
		o->keeps = true;
		dp_buf_put(&o->held, bytes + done, n - (size_t)done);
	}
	return o->held.failed ? 0 : (ssize_t)n;
}

/* The same pipe or terminal, without blocking; another file position would be another place in a regular file. */
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
		return dp_error(DP_TAG_NOMEM, "out of memory for the output");
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

FILE *dp_outlet_file(struct dp_outlet *o)
{
	return o->file;
}

size_t dp_outlet_settle(struct dp_outlet *o)
{
	fflush(o->file);
	const ssize_t done = push(o, (const char *)o->held.data, o->held.len);
	const size_t left = done < 0 ? 0 : o->held.len - (size_t)done; /* without a reader there is nobody to miss it */
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
