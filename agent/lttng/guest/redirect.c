/* SPDX-License-Identifier: MIT */
/*
 * The functions that liblttng-ust gets in place of the C library's. A resident thread (redirect.h) has LTTng's descriptors, and
 * mostly gets what it asks for. On a thread of the program the same numbers are the program's files:
 *
 *   write, writev   in a hit are passed to the sink's thread (service.c)
 *   close           does nothing; other functions that make or use a descriptor fail as if there were none
 *
 * And for all threads:
 *
 *   fork            fails: the program's fork handlers and SIGCHLD handler would run, its wait() would find the child. LTTng
 *                   forks only to create a file of shared memory with certain permissions: shm_open does that.
 *   syscall         perf_event_open is refused, and with it the perf contexts, which would open a descriptor and allocate
 *                   memory in a hit
 *   getenv          LTTng's constructor must not wait for a session daemon, which may hang. No plug-ins, debug output or
 *                   blocking: these variables were not set for a program without LTTng.
 *   setsockopt      LTTng derives its socket timeouts from the same variable: with 10 ms it would give a busy daemon up
 *                   in the middle of an event's registration, and the event would be missing
 *   strdup ...      redirect_memory.c
 *   dl_iterate_phdr redirect_phdr.c
 *   __tls_get_addr  redirect_tls.c
 */
#include "agent/lttng/guest/redirect.h"

#include "agent/lttng/guest/guest.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

__thread uint32_t dp_lttng_resident;

/*
 * The loader's thread cannot be marked when the redirections are made: thread-local memory is set up later. It is recognised by
 * its tid at its first call from liblttng-ust's constructors; after that no tid is checked any more.
 */
static int loader;

void dp_lttng_loader_is(int tid)
{
	__atomic_store_n(&loader, tid, __ATOMIC_RELEASE);
}

static bool resident(void)
{
	if (dp_lttng_resident)
		return true;
	const int tid = __atomic_load_n(&loader, __ATOMIC_ACQUIRE);
	if (!tid || syscall(SYS_gettid) != tid)
		return false;
	dp_lttng_resident = 1;
	__atomic_store_n(&loader, 0, __ATOMIC_RELEASE);
	return true;
}

#define PATIENCE_S 3 /* liblttng-ust's default timeout for a session daemon */

static int refuse(int why)
{
	errno = why;
	return -1;
}

/* ---- descriptors ------------------------------------------------------------------------------------------------- */

static int to_close(int fd)
{
	return resident() ? dp_lttng_close(fd) : 0;
}

static ssize_t to_writev(int fd, const struct iovec *parts, int n)
{
	if (resident())
		return writev(fd, parts, n);
	return fd <= STDERR_FILENO ? refuse(EBADF) : dp_lttng_post(fd, parts, n); /* 0, 1, 2: messages to the program's users */
}

static ssize_t to_write(int fd, const void *data, size_t size)
{
	const struct iovec part = {.iov_base = (void *)(uintptr_t)data, .iov_len = size};
	if (resident())
		return write(fd, data, size);
	if (size == 1 && fd > STDERR_FILENO)
		return dp_lttng_post_wake(fd);
	return to_writev(fd, &part, 1);
}

static ssize_t to_send(int fd, const void *data, size_t size, int flags)
{
	return resident() ? send(fd, data, size, flags) : refuse(ENOTCONN);
}

static ssize_t to_sendmsg(int fd, const struct msghdr *message, int flags)
{
	return resident() ? sendmsg(fd, message, flags) : refuse(ENOTCONN);
}

static ssize_t to_recv(int fd, void *data, size_t size, int flags)
{
	return resident() ? recv(fd, data, size, flags) : refuse(EBADF);
}

static ssize_t to_recvmsg(int fd, struct msghdr *message, int flags)
{
	return resident() ? recvmsg(fd, message, flags) : refuse(EBADF);
}

static ssize_t to_read(int fd, void *data, size_t size)
{
	return resident() ? read(fd, data, size) : refuse(EBADF);
}

static int to_poll(struct pollfd *fds, nfds_t n, int timeout)
{
	return resident() || n == 0 ? poll(fds, n, timeout) : refuse(EBADF);
}

static int to_shutdown(int fd, int how)
{
	return resident() ? shutdown(fd, how) : refuse(EBADF);
}

static int to_setsockopt(int fd, int level, int option, const void *value, socklen_t size)
{
	static const struct timeval patience = {.tv_sec = PATIENCE_S};
	if (!resident())
		return refuse(EBADF);
	if (level == SOL_SOCKET && (option == SO_RCVTIMEO || option == SO_SNDTIMEO) && size == sizeof(patience))
		value = &patience;
	return setsockopt(fd, level, option, value, size);
}

static int to_fcntl(int fd, int command, ...)
{
	va_list list;
	va_start(list, command);
	const long argument = va_arg(list, long);
	va_end(list);
	return resident() ? fcntl(fd, command, argument) : refuse(EBADF);
}

static int to_ftruncate(int fd, off_t size)
{
	return resident() ? ftruncate(fd, size) : refuse(EBADF);
}

static int to_fsync(int fd)
{
	return resident() ? fsync(fd) : refuse(EBADF);
}

static off_t to_lseek(int fd, off_t offset, int from)
{
	return resident() ? lseek(fd, offset, from) : refuse(EBADF);
}

static int to_open(const char *path, int flags, ...)
{
	va_list list;
	va_start(list, flags);
	/* O_TMPFILE contains the bit of O_DIRECTORY */
	const bool creates = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
	const mode_t mode = creates ? va_arg(list, mode_t) : 0;
	va_end(list);
	return resident() ? open(path, flags, mode) : refuse(EMFILE);
}

static int to_socket(int family, int type, int protocol)
{
	return resident() ? socket(family, type, protocol) : refuse(EMFILE);
}

static int to_pipe2(int fds[2], int flags)
{
	return resident() ? pipe2(fds, flags) : refuse(EMFILE);
}

/* ---- shared memory ----------------------------------------------------------------------------------------------- */

#define WAIT_FILE "/lttng-ust-wait-"

/* An application waits in this file for a session daemon: for any one, or if it ends in "-UID", for one user's. */
static void make_wait_file(const char *name)
{
	const bool one_user = strchr(name + sizeof(WAIT_FILE) - 1, '-') != NULL;
	const int fd = shm_open(name, O_RDWR | O_CREAT, 0600);
	struct stat st;
	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && st.st_size == 0 && st.st_uid == geteuid() && fchmod(fd, one_user ? 0640 : 0666) == 0 &&
	    ftruncate(fd, sysconf(_SC_PAGESIZE)) != 0)
		shm_unlink(name); /* no space: restores the former state */
	close(fd);
}

static bool empty(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 && st.st_size == 0;
}

static int to_shm_open(const char *name, int flags, mode_t mode)
{
	if (!resident())
		return refuse(EMFILE);
	const int fd = shm_open(name, flags, mode);
	if (strncmp(name, WAIT_FILE, sizeof(WAIT_FILE) - 1) != 0 || (fd >= 0 ? !empty(fd) : errno != ENOENT))
		return fd;
	if (fd >= 0)
		close(fd);
	make_wait_file(name);
	return shm_open(name, flags, mode);
}

/* ---- the process ------------------------------------------------------------------------------------------------- */

static pid_t to_fork(void)
{
	return refuse(ENOSYS);
}

static long to_syscall(long nr, ...)
{
	long a[6];
	va_list list;
	va_start(list, nr);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	return nr == SYS_perf_event_open ? refuse(ENODEV) : syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static char *to_getenv(const char *name)
{
	static char no_time[] = "0";
	static const char *const withheld[] = {"LTTNG_UST_ALLOW_BLOCKING", "LTTNG_UST_DEBUG", "LTTNG_UST_ABORT_ON_CRITICAL",
	                                       "LTTNG_UST_CLOCK_PLUGIN", "LTTNG_UST_GETCPU_PLUGIN"};
	if (strcmp(name, "LTTNG_UST_REGISTER_TIMEOUT") == 0)
		return no_time;
	for (size_t i = 0; i < sizeof(withheld) / sizeof(withheld[0]); i++)
		if (strcmp(name, withheld[i]) == 0)
			return NULL;
	return getenv(name);
}

struct beginning {
	void *(*routine)(void *);
	void *argument;
};

static void *begin(void *arg)
{
	const struct beginning b = *(struct beginning *)arg;
	free(arg);
	dp_lttng_resident = 1;
	dp_lttng_be_guest();
	return b.routine(b.argument);
}

/* A thread shares the descriptors of the one that creates it. */
static int to_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*routine)(void *), void *argument)
{
	if (!resident())
		return EAGAIN;
	struct beginning *b = malloc(sizeof(*b));
	if (!b)
		return EAGAIN;
	*b = (struct beginning){routine, argument};
	const int error = pthread_create(thread, attr, begin, b);
	if (error)
		free(b);
	return error;
}

/* ---- by name ----------------------------------------------------------------------------------------------------- */

#define TO(function) (void *)(uintptr_t)(function)

static const struct redirection {
	const char *name;
	void *to;
	bool needed;
} redirections[] = {
        {"write", TO(to_write), true},
        {"writev", TO(to_writev), true},
        {"close", TO(to_close), true},
        {"send", TO(to_send), false},
        {"sendmsg", TO(to_sendmsg), true},
        {"recv", TO(to_recv), false},
        {"recvmsg", TO(to_recvmsg), true},
        {"read", TO(to_read), false},
        {"poll", TO(to_poll), false},
        {"shutdown", TO(to_shutdown), false},
        {"setsockopt", TO(to_setsockopt), false},
        {"fcntl", TO(to_fcntl), false},
        {"fcntl64", TO(to_fcntl), false},
        {"ftruncate", TO(to_ftruncate), false},
        {"ftruncate64", TO(to_ftruncate), false},
        {"fsync", TO(to_fsync), false},
        {"lseek", TO(to_lseek), false},
        {"lseek64", TO(to_lseek), false},
        {"open", TO(to_open), false},
        {"open64", TO(to_open), false},
        {"socket", TO(to_socket), false},
        {"pipe2", TO(to_pipe2), false},
        {"shm_open", TO(to_shm_open), false},
        {"fork", TO(to_fork), false},
        {"syscall", TO(to_syscall), false},
        {"getenv", TO(to_getenv), false},
        {"secure_getenv", TO(to_getenv), false},
        {"pthread_create", TO(to_pthread_create), true},
        {"strdup", TO(dp_lttng_strdup), false},
        {"__strdup", TO(dp_lttng_strdup), false},
        {"strndup", TO(dp_lttng_strndup), false},
        {"asprintf", TO(dp_lttng_asprintf), false},
        {"__asprintf_chk", TO(dp_lttng_asprintf_chk), false},
        {"vasprintf", TO(dp_lttng_vasprintf), false},
        {"__vasprintf_chk", TO(dp_lttng_vasprintf_chk), false},
        {"getdelim", TO(dp_lttng_getdelim), false},
        {"__getdelim", TO(dp_lttng_getdelim), false},
        {"dl_iterate_phdr", TO(dp_lttng_iterate_phdr), false},
        {"__tls_get_addr", TO(dp_lttng_tls_get), false},
};
#define REDIRECTIONS (sizeof(redirections) / sizeof(redirections[0]))
_Static_assert(REDIRECTIONS <= 64, "a bit each");

void *dp_lttng_redirection(const char *name, unsigned *ret_number)
{
	for (unsigned i = 0; i < REDIRECTIONS; i++) {
		if (strcmp(name, redirections[i].name) != 0)
			continue;
		*ret_number = i;
		return redirections[i].to;
	}
	return NULL;
}

uint64_t dp_lttng_redirections_needed(void)
{
	uint64_t needed = 0;
	for (unsigned i = 0; i < REDIRECTIONS; i++)
		needed |= (uint64_t)redirections[i].needed << i;
	return needed;
}
