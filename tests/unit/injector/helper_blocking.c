/* SPDX-License-Identifier: MIT */
/* Descriptors: pipes, sockets, and calls that move bytes between them. */
#include "helper_blocking_made.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <termios.h>
#include <unistd.h>

#define LONG_S 1000
static const struct timespec long_time = {LONG_S, 0};
static const struct timeval long_val = {LONG_S, 0};
static int fd, other, empty[2];
static char byte, room[1 << 16];

/* ---- descriptors to read from ----------------------------------------------------------------------------- */

int blocking_empty_pipe(void)
{
	if (pipe(empty))
		return -1;
	return fd = empty[0];
}

static int make_eventfd(void)
{
	return fd = eventfd(0, 0);
}

static int make_timerfd(void)
{
	return fd = timerfd_create(CLOCK_MONOTONIC, 0);
}

static int make_signalfd(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return fd = signalfd(-1, &set, 0);
}

static int make_inotify(void)
{
	return fd = inotify_init();
}

static int make_fanotify(void)
{
	return fd = fanotify_init(FAN_CLASS_NOTIF, O_RDONLY);
}

static int make_userfaultfd(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	fd = (int)syscall(SYS_userfaultfd, 0);
	return fd < 0 || ioctl(fd, UFFDIO_API, &api) ? -1 : fd;
}

static int make_pty(void)
{
	fd = posix_openpt(O_RDWR | O_NOCTTY);
	return fd < 0 || grantpt(fd) || unlockpt(fd) ? -1 : (other = open(ptsname(fd), O_RDWR | O_NOCTTY)) < 0 ? -1 : fd;
}

static int make_kmsg(void)
{
	fd = open("/dev/kmsg", O_RDONLY);
	return fd < 0 || lseek(fd, 0, SEEK_END) ? -1 : fd;
}

BLOCKING_CALL(read_big, SYS_read, fd, room, 8192)

static long readv_one(void)
{
	struct iovec v = {room, 64};
	return syscall(SYS_readv, fd, &v, 1);
}

static long preadv2_one(void)
{
	struct iovec v = {room, 64};
	return syscall(SYS_preadv2, fd, &v, 1, -1L, -1L, 0);
}

/* ---- full descriptors to write to ------------------------------------------------------------------------- */

/* Writes as much as there is room for; true if there was any. */
static bool put(int to)
{
	const int flags = fcntl(to, F_GETFL);
	bool some = false;
	fcntl(to, F_SETFL, flags | O_NONBLOCK);
	for (size_t n = sizeof(room); n; n /= 2)
		while (write(to, room, n) > 0)
			some = true;
	fcntl(to, F_SETFL, flags);
	return some;
}

static int fill(int to)
{
	put(to);
	return to;
}

int blocking_full_pipe(void)
{
	int p[2];
	if (pipe(p))
		return -1;
	return fd = fill(p[1]);
}

static int full_eventfd(void)
{
	const uint64_t most = UINT64_MAX - 1;
	fd = eventfd(0, 0);
	return fd < 0 || write(fd, &most, sizeof(most)) != sizeof(most) ? -1 : fd;
}

/* Output held back, as by Ctrl-S. A terminal that was filled does not stay full: the kernel moves its contents at any time. */
static int held_back_pty(void)
{
	return make_pty() < 0 || tcflow(other, TCOOFF) ? -1 : (fd = other);
}

static long write_one(void)
{
	static const uint64_t one = 1;
	return syscall(SYS_write, fd, &one, sizeof(one));
}

static long writev_one(void)
{
	struct iovec v = {room, 64};
	return syscall(SYS_writev, fd, &v, 1);
}

static long pwritev2_one(void)
{
	struct iovec v = {room, 64};
	return syscall(SYS_pwritev2, fd, &v, 1, -1L, -1L, 0);
}

/* ---- sockets ---------------------------------------------------------------------------------------------- */

static int timed(int s)
{
	return setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &long_val, sizeof(long_val)) ||
	                       setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &long_val, sizeof(long_val))
	               ? -1
	               : s;
}

static int unix_pair(int type)
{
	int pair[2];
	if (socketpair(AF_UNIX, type, 0, pair))
		return -1;
	other = pair[1];
	return fd = pair[0];
}

int blocking_quiet_socket(void)
{
	return unix_pair(SOCK_STREAM);
}

int blocking_quiet_timed(void)
{
	return blocking_quiet_socket() < 0 ? -1 : timed(fd);
}

static int quiet_datagrams_timed(void)
{
	return unix_pair(SOCK_DGRAM) < 0 ? -1 : timed(fd);
}

static int quiet_udp_timed(void)
{
	return (fd = socket(AF_INET, SOCK_DGRAM, 0)) < 0 ? -1 : timed(fd);
}

int blocking_full_socket(void)
{
	return blocking_quiet_socket() < 0 ? -1 : fill(fd);
}

int blocking_full_timed(void)
{
	return blocking_full_socket() < 0 ? -1 : timed(fd);
}

static int full_datagrams_timed(void)
{
	return unix_pair(SOCK_DGRAM) < 0 ? -1 : timed(fill(fd));
}

static int tcp_listener(struct sockaddr_in *a)
{
	socklen_t n = sizeof(*a);
	const int s = socket(AF_INET, SOCK_STREAM, 0), size = 1 << 16; /* a fixed size, so that a full buffer stays full */
	*a = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	return setsockopt(s, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)) || bind(s, (struct sockaddr *)a, sizeof(*a)) ||
	                       listen(s, 0) || getsockname(s, (struct sockaddr *)a, &n)
	               ? -1
	               : s;
}

static int tcp_pair(void)
{
	struct sockaddr_in a;
	const int l = tcp_listener(&a);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (l < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) || (other = accept(l, NULL, NULL)) < 0)
		return -1;
	return fd;
}

int blocking_quiet_tcp_timed(void)
{
	return tcp_pair() < 0 ? -1 : timed(fd);
}

static struct tcp_info tcp_info(int of)
{
	struct tcp_info info = {0};
	socklen_t n = sizeof(info);
	getsockopt(of, IPPROTO_TCP, TCP_INFO, &info, &n);
	return info;
}

/* Data in flight makes room when it arrives: the socket is full when nothing is in flight and no more fits. */
int blocking_full_tcp_timed(void)
{
	if (tcp_pair() < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)))
		return -1;
	while (tcp_info(fd).tcpi_unacked || put(fd))
		sched_yield();
	return timed(fd);
}

static struct sockaddr_in far_end;

static int waiting_listener(void)
{
	return fd = tcp_listener(&far_end);
}

static int waiting_listener_timed(void)
{
	return waiting_listener() < 0 ? -1 : timed(fd);
}

static struct sockaddr_un far_name;

static int unix_listener(void)
{
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	far_name = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(far_name.sun_path + 1, sizeof(far_name.sun_path) - 1, "dp-blocking-%d", (int)getpid());
	return bind(fd, (struct sockaddr *)&far_name, sizeof(far_name)) || listen(fd, 0) ? -1 : fd;
}

static int unix_listener_timed(void)
{
	return unix_listener() < 0 ? -1 : timed(fd);
}

/* A listener whose queue is full. */
static int unix_crowd(void)
{
	if (unix_listener() < 0)
		return -1;
	for (int i = 0; i < 4; i++) {
		const int s = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		connect(s, (struct sockaddr *)&far_name, sizeof(far_name));
	}
	return fd = socket(AF_UNIX, SOCK_STREAM, 0);
}

static int unix_crowd_timed(void)
{
	return unix_crowd() < 0 ? -1 : timed(fd);
}

static int tcp_crowd(void)
{
	const int l = tcp_listener(&far_end);
	if (l < 0)
		return -1;
	for (int i = 0; i < 8; i++) {
		const int s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		connect(s, (struct sockaddr *)&far_end, sizeof(far_end));
	}
	while (tcp_info(l).tcpi_unacked <= tcp_info(l).tcpi_sacked) /* of a listener: waiting connections, and their maximum */
		sched_yield();
	return fd = socket(AF_INET, SOCK_STREAM, 0);
}

static int tcp_crowd_timed(void)
{
	return tcp_crowd() < 0 ? -1 : timed(fd);
}

BLOCKING_CALL(recv_one, SYS_recvfrom, fd, &byte, 1, 0, NULL, NULL)

static long recvmsg_one(void)
{
	struct iovec v = {&byte, 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
	return syscall(SYS_recvmsg, fd, &m, 0);
}

static long recvmmsg_one(void)
{
	struct iovec v = {&byte, 1};
	struct mmsghdr m = {.msg_hdr = {.msg_iov = &v, .msg_iovlen = 1}};
	return syscall(SYS_recvmmsg, fd, &m, 1, 0, NULL);
}

/* The kernel checks this timeout only when a message arrives. */
static long recvmmsg_until(void)
{
	struct iovec v = {&byte, 1};
	struct mmsghdr m = {.msg_hdr = {.msg_iov = &v, .msg_iovlen = 1}};
	struct timespec ts = long_time;
	return syscall(SYS_recvmmsg, fd, &m, 1, 0, &ts);
}

BLOCKING_CALL(send_one, SYS_sendto, fd, room, 1024, 0, NULL, 0)

static long sendmsg_one(void)
{
	struct iovec v = {room, 1024};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
	return syscall(SYS_sendmsg, fd, &m, 0);
}

static long sendmmsg_one(void)
{
	struct iovec v = {room, 1024};
	struct mmsghdr m = {.msg_hdr = {.msg_iov = &v, .msg_iovlen = 1}};
	return syscall(SYS_sendmmsg, fd, &m, 1, 0);
}

BLOCKING_CALL(accept_one, SYS_accept, fd, NULL, NULL)
BLOCKING_CALL(accept4_one, SYS_accept4, fd, NULL, NULL, 0)

BLOCKING_CALL(connect_unix, SYS_connect, fd, &far_name, sizeof(far_name))
BLOCKING_CALL(connect_tcp, SYS_connect, fd, &far_end, sizeof(far_end))

static const struct blocking table[] = {
        {"read_big of empty_pipe", SYS_read, blocking_empty_pipe, read_big, false},
        {"read_big of make_eventfd", SYS_read, make_eventfd, read_big, false},
        {"read_big of make_timerfd", SYS_read, make_timerfd, read_big, false},
        {"read_big of make_signalfd", SYS_read, make_signalfd, read_big, false},
        {"read_big of make_inotify", SYS_read, make_inotify, read_big, false},
        {"read_big of make_fanotify", SYS_read, make_fanotify, read_big, false},
        {"read_big of make_userfaultfd", SYS_read, make_userfaultfd, read_big, false},
        {"read_big of make_pty", SYS_read, make_pty, read_big, false},
        {"read_big of make_kmsg", SYS_read, make_kmsg, read_big, false},
        {"read_big of quiet_socket", SYS_read, blocking_quiet_socket, read_big, false},
        {"read_big of quiet_timed", SYS_read, blocking_quiet_timed, read_big, true},
        {"read_big of quiet_tcp_timed", SYS_read, blocking_quiet_tcp_timed, read_big, true},
        {"readv_one of empty_pipe", SYS_readv, blocking_empty_pipe, readv_one, false},
        {"readv_one of quiet_socket", SYS_readv, blocking_quiet_socket, readv_one, false},
        {"readv_one of quiet_timed", SYS_readv, blocking_quiet_timed, readv_one, true},
        {"preadv2_one of empty_pipe", SYS_preadv2, blocking_empty_pipe, preadv2_one, false},
        {"preadv2_one of quiet_socket", SYS_preadv2, blocking_quiet_socket, preadv2_one, false},
        {"preadv2_one of quiet_timed", SYS_preadv2, blocking_quiet_timed, preadv2_one, true},
        {"write_one of full_pipe", SYS_write, blocking_full_pipe, write_one, false},
        {"write_one of full_eventfd", SYS_write, full_eventfd, write_one, false},
        {"write_one of held_back_pty", SYS_write, held_back_pty, write_one, false},
        {"write_one of full_socket", SYS_write, blocking_full_socket, write_one, false},
        {"write_one of full_timed", SYS_write, blocking_full_timed, write_one, true},
        {"write_one of full_tcp_timed", SYS_write, blocking_full_tcp_timed, write_one, true},
        {"writev_one of full_pipe", SYS_writev, blocking_full_pipe, writev_one, false},
        {"writev_one of full_timed", SYS_writev, blocking_full_timed, writev_one, true},
        {"pwritev2_one of full_pipe", SYS_pwritev2, blocking_full_pipe, pwritev2_one, false},
        {"pwritev2_one of full_socket", SYS_pwritev2, blocking_full_socket, pwritev2_one, false},
        {"pwritev2_one of full_timed", SYS_pwritev2, blocking_full_timed, pwritev2_one, true},
        {"recv_one of quiet_socket", SYS_recvfrom, blocking_quiet_socket, recv_one, false},
        {"recv_one of quiet_timed", SYS_recvfrom, blocking_quiet_timed, recv_one, true},
        {"recv_one of quiet_datagrams_timed", SYS_recvfrom, quiet_datagrams_timed, recv_one, true},
        {"recv_one of quiet_udp_timed", SYS_recvfrom, quiet_udp_timed, recv_one, true},
        {"recv_one of quiet_tcp_timed", SYS_recvfrom, blocking_quiet_tcp_timed, recv_one, true},
        {"recvmsg_one of quiet_socket", SYS_recvmsg, blocking_quiet_socket, recvmsg_one, false},
        {"recvmsg_one of quiet_timed", SYS_recvmsg, blocking_quiet_timed, recvmsg_one, true},
        {"recvmmsg_one of quiet_socket", SYS_recvmmsg, blocking_quiet_socket, recvmmsg_one, false},
        {"recvmmsg_until of quiet_socket", SYS_recvmmsg, blocking_quiet_socket, recvmmsg_until, false},
        {"recvmmsg_one of quiet_timed", SYS_recvmmsg, blocking_quiet_timed, recvmmsg_one, true},
        {"send_one of full_socket", SYS_sendto, blocking_full_socket, send_one, false},
        {"send_one of full_timed", SYS_sendto, blocking_full_timed, send_one, true},
        {"send_one of full_datagrams_timed", SYS_sendto, full_datagrams_timed, send_one, true},
        {"send_one of full_tcp_timed", SYS_sendto, blocking_full_tcp_timed, send_one, true},
        {"sendmsg_one of full_socket", SYS_sendmsg, blocking_full_socket, sendmsg_one, false},
        {"sendmsg_one of full_timed", SYS_sendmsg, blocking_full_timed, sendmsg_one, true},
        {"sendmmsg_one of full_socket", SYS_sendmmsg, blocking_full_socket, sendmmsg_one, false},
        {"sendmmsg_one of full_timed", SYS_sendmmsg, blocking_full_timed, sendmmsg_one, true},
        {"accept_one of waiting_listener", SYS_accept, waiting_listener, accept_one, false},
        {"accept_one of waiting_listener_timed", SYS_accept, waiting_listener_timed, accept_one, true},
        {"accept_one of unix_listener", SYS_accept, unix_listener, accept_one, false},
        {"accept_one of unix_listener_timed", SYS_accept, unix_listener_timed, accept_one, true},
        {"accept4_one of waiting_listener", SYS_accept4, waiting_listener, accept4_one, false},
        {"accept4_one of waiting_listener_timed", SYS_accept4, waiting_listener_timed, accept4_one, true},
        {"connect_unix of unix_crowd", SYS_connect, unix_crowd, connect_unix, false},
        {"connect_unix of unix_crowd_timed", SYS_connect, unix_crowd_timed, connect_unix, true},
        {"connect_tcp of tcp_crowd", SYS_connect, tcp_crowd, connect_tcp, false},
        {"connect_tcp of tcp_crowd_timed", SYS_connect, tcp_crowd_timed, connect_tcp, true},
};

const struct blocking *blocking_descriptors(size_t *n)
{
	*n = sizeof(table) / sizeof(*table);
	return table;
}
