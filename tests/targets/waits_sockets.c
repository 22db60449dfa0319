/* SPDX-License-Identifier: MIT */
/* Calls that a stop ends with EINTR if the socket has a timeout, and copies that take as long as such a wait. */
#include "target.h"
#include "waits.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

static const struct timeval nap = {0, NAP_MS * 1000};

static int timed(int fd, int option)
{
	return fd < 0 ? -1 : setsockopt(fd, SOL_SOCKET, option, &nap, sizeof nap);
}

/* ---- nothing comes ------------------------------------------------------------------------------------------ */

static int listener_prepare(struct wait_state *s)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	s->fd = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(s->fd, (struct sockaddr *)&a, sizeof a) != 0 || listen(s->fd, 1) != 0)
		return -1;
	return timed(s->fd, SO_RCVTIMEO);
}

static long accept_timed(struct wait_state *s)
{
	return accept(s->fd, NULL, NULL);
}

static int udp_prepare(struct wait_state *s)
{
	s->fd = socket(AF_INET, SOCK_DGRAM, 0);
	return timed(s->fd, SO_RCVTIMEO);
}

static int quiet_prepare(struct wait_state *s)
{
	int p[2];
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, p) != 0)
		return -1;
	s->fd = p[0];
	return timed(s->fd, SO_RCVTIMEO);
}

static long recv_timed(struct wait_state *s)
{
	char c;
	return recv(s->fd, &c, 1, 0);
}

static long preadv2_timed(struct wait_state *s)
{
	char c;
	struct iovec v = {&c, 1};
	return preadv2(s->fd, &v, 1, -1, 0);
}

static int quiet_to_pipe_prepare(struct wait_state *s)
{
	int p[2];
	if (pipe(p) != 0)
		return -1;
	s->fd2 = p[1];
	return quiet_prepare(s);
}

static long splice_from(struct wait_state *s)
{
	return splice(s->fd, NULL, s->fd2, NULL, 1, 0);
}

/* ---- nothing can be sent: the call gives up after the timeout ----------------------------------------------- */

static int full_prepare(struct wait_state *s)
{
	static char bytes[4096];
	int p[2];
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, p) != 0)
		return -1;
	s->fd = p[0];
	while (send(s->fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
		;
	return timed(s->fd, SO_SNDTIMEO);
}

static int from_file_prepare(struct wait_state *s)
{
	s->fd2 = memfd_create("waits", 0);
	return s->fd2 < 0 || ftruncate(s->fd2, 4096) != 0 ? -1 : full_prepare(s);
}

static int from_pipe_prepare(struct wait_state *s)
{
	int p[2];
	if (pipe(p) != 0 || write(p[1], "x", 1) != 1)
		return -1;
	s->fd2 = p[0];
	return full_prepare(s);
}

static long sendfile_timed(struct wait_state *s)
{
	off_t at = 0;
	return sendfile(s->fd, s->fd2, &at, 1024);
}

static long splice_to(struct wait_state *s)
{
	return splice(s->fd2, NULL, s->fd, NULL, 1, 0);
}

static long pwritev2_timed(struct wait_state *s)
{
	struct iovec v = {"x", 1};
	return pwritev2(s->fd, &v, 1, -1, 0);
}

/* ---- copies ------------------------------------------------------------------------------------------------- */

#define BIG (4l << 20)

static int copy_prepare(struct wait_state *s)
{
	s->fd = memfd_create("from", 0);
	s->fd2 = memfd_create("to", 0);
	return s->fd < 0 || s->fd2 < 0 ? -1 : fallocate(s->fd, 0, 0, BIG);
}

static long copy_once(struct wait_state *s)
{
	off_t in = 0, out = 0;
	target_sleep_us(NAP_MS * 1000);
	return copy_file_range(s->fd, &in, s->fd2, &out, BIG, 0);
}

static long allocate_once(struct wait_state *s)
{
	target_sleep_us(NAP_MS * 1000);
	return ftruncate(s->fd2, 0) != 0 ? -1 : fallocate(s->fd2, 0, 0, BIG);
}

const struct wait_kind socket_waits[] = {
        {"accept SO_RCVTIMEO", listener_prepare, accept_timed},
        {"recv SO_RCVTIMEO", udp_prepare, recv_timed},
        {"preadv2 SO_RCVTIMEO", quiet_prepare, preadv2_timed},
        {"splice SO_RCVTIMEO", quiet_to_pipe_prepare, splice_from},
        {"splice SO_SNDTIMEO", from_pipe_prepare, splice_to},
        {"sendfile SO_SNDTIMEO", from_file_prepare, sendfile_timed},
        {"pwritev2 SO_SNDTIMEO", full_prepare, pwritev2_timed},
        {"copy_file_range", copy_prepare, copy_once},
        {"fallocate", copy_prepare, allocate_once},
};
const size_t socket_waits_n = sizeof socket_waits / sizeof socket_waits[0];
