/* SPDX-License-Identifier: MIT */
/* Calls that move bytes from one descriptor to another. */
#include "helper_blocking_made.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int fd, source; /* the descriptors to copy to and from */
static char room[1 << 16];

static int with_file(int made)
{
	source = (int)syscall(SYS_memfd_create, "blocking", 0);
	return made < 0 || write(source, room, sizeof(room)) != sizeof(room) ? -1 : (fd = made);
}

static int with_pipe(int made)
{
	int p[2];
	if (made < 0 || pipe(p) || write(p[1], room, 1024) != 1024)
		return -1;
	source = p[0];
	return fd = made;
}

#define WITH(what, with, made)                                                                                                   \
	static int what(void)                                                                                                    \
	{                                                                                                                        \
		return with(made());                                                                                             \
	}
WITH(file_to_pipe, with_file, blocking_full_pipe)
WITH(file_to_socket, with_file, blocking_full_socket)
WITH(file_to_socket_timed, with_file, blocking_full_timed)
WITH(file_to_tcp_timed, with_file, blocking_full_tcp_timed)
WITH(pipe_to_pipe, with_pipe, blocking_full_pipe)
WITH(pipe_to_socket, with_pipe, blocking_full_socket)
WITH(pipe_to_socket_timed, with_pipe, blocking_full_timed)
WITH(pipe_to_tcp_timed, with_pipe, blocking_full_tcp_timed)

static int sink_pipe(int made)
{
	int p[2];
	if (made < 0 || pipe(p))
		return -1;
	source = made;
	return fd = p[1];
}
WITH(empty_to_pipe, sink_pipe, blocking_empty_pipe)
WITH(socket_to_pipe, sink_pipe, blocking_quiet_socket)
WITH(socket_to_pipe_timed, sink_pipe, blocking_quiet_timed)
WITH(tcp_to_pipe_timed, sink_pipe, blocking_quiet_tcp_timed)

static long sendfile_one(void)
{
	off_t at = 0;
	return syscall(SYS_sendfile, fd, source, &at, 1024);
}

BLOCKING_CALL(splice_one, SYS_splice, source, NULL, fd, NULL, 1024, 0)
BLOCKING_CALL(tee_one, SYS_tee, source, fd, 1024, 0)

static long vmsplice_one(void)
{
	struct iovec v = {room, 4096};
	return syscall(SYS_vmsplice, fd, &v, 1, 0);
}

static int to_full_pipe(void)
{
	return fd = blocking_full_pipe();
}

static const struct blocking table[] = {
        {"sendfile_one of file_to_pipe", SYS_sendfile, file_to_pipe, sendfile_one, false},
        {"sendfile_one of file_to_socket", SYS_sendfile, file_to_socket, sendfile_one, false},
        {"sendfile_one of file_to_socket_timed", SYS_sendfile, file_to_socket_timed, sendfile_one, true},
        {"sendfile_one of file_to_tcp_timed", SYS_sendfile, file_to_tcp_timed, sendfile_one, true},
        {"splice_one of empty_to_pipe", SYS_splice, empty_to_pipe, splice_one, false},
        {"splice_one of pipe_to_pipe", SYS_splice, pipe_to_pipe, splice_one, false},
        {"splice_one of pipe_to_socket", SYS_splice, pipe_to_socket, splice_one, false},
        {"splice_one of pipe_to_socket_timed", SYS_splice, pipe_to_socket_timed, splice_one, true},
        {"splice_one of pipe_to_tcp_timed", SYS_splice, pipe_to_tcp_timed, splice_one, true},
        {"splice_one of socket_to_pipe", SYS_splice, socket_to_pipe, splice_one, false},
        {"splice_one of socket_to_pipe_timed", SYS_splice, socket_to_pipe_timed, splice_one, true},
        {"splice_one of tcp_to_pipe_timed", SYS_splice, tcp_to_pipe_timed, splice_one, true},
        {"tee_one of empty_to_pipe", SYS_tee, empty_to_pipe, tee_one, false},
        {"tee_one of pipe_to_pipe", SYS_tee, pipe_to_pipe, tee_one, false},
        {"vmsplice_one of to_full_pipe", SYS_vmsplice, to_full_pipe, vmsplice_one, false},
};

const struct blocking *blocking_copies(size_t *n)
{
	*n = sizeof(table) / sizeof(*table);
	return table;
}
