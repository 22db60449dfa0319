/* SPDX-License-Identifier: MIT */
/*
 * Calls that a ptrace stop interrupts for good, and many others: in a storm of freezes and borrows none of them may return, and
 * after it a real signal with a handler must still interrupt each of them, once.
 */
#include "helper_tracee.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LONG_S 100
static const struct timespec long_time = {LONG_S, 0};
static int fd, other;
static uint32_t word;

static void on_usr1(int sig)
{
	(void)sig;
	tr->handled++;
}

/* Calls `what` forever and counts its results. */
static void loop(long (*what)(void))
{
	struct sigaction sa = {.sa_handler = on_usr1};
	sigaction(SIGUSR1, &sa, NULL);
	tr->ready = 1;
	for (;;) {
		long rc = what();
		if (rc < 0 && errno == EINTR)
			tr->eintr++;
		else if (rc < 0) {
			tr->failed_errno = errno;
			tr->failed++;
			tr_sleep_us(1000);
		}
		tr->calls++;
	}
}

static int pipe_end(void)
{
	int fds[2];
	return pipe(fds) ? -1 : fds[0];
}

static int timed_socket(int type, int option)
{
	int pair[2];
	struct timeval tv = {LONG_S, 0};
	if (socketpair(AF_UNIX, type, 0, pair))
		return -1;
	other = pair[1];
	setsockopt(pair[0], SOL_SOCKET, option, &tv, sizeof(tv));
	return pair[0];
}

static int listener(void)
{
	struct timeval tv = {LONG_S, 0};
	int s = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	return bind(s, (struct sockaddr *)&a, sizeof(a)) || listen(s, 1) ? -1 : s;
}

static int make_epoll(void)
{
	int e = epoll_create1(0);
	struct epoll_event ev = {.events = EPOLLIN};
	epoll_ctl(e, EPOLL_CTL_ADD, pipe_end(), &ev);
	return e;
}

static long do_epoll(int ms)
{
	struct epoll_event ev;
	return syscall(SYS_epoll_wait, fd, &ev, 1, ms);
}

static long epoll_forever(void)
{
	return do_epoll(-1);
}

static long epoll_timed(void)
{
	return do_epoll(LONG_S * 1000);
}

static long epoll_pwait_masked(void)
{
	struct epoll_event ev;
	uint64_t mask = 1 << (SIGUSR2 - 1);
	return syscall(SYS_epoll_pwait, fd, &ev, 1, -1, &mask, 8);
}

static long epoll_pwait2_forever(void)
{
	struct epoll_event ev;
	return syscall(441, fd, &ev, 1, NULL, NULL, 8);
}

static long do_semop(const struct timespec *ts)
{
	struct sembuf op = {.sem_op = -1};
	return syscall(SYS_semtimedop, fd, &op, 1, ts);
}

static long semop_forever(void)
{
	struct sembuf op = {.sem_op = -1};
	return syscall(SYS_semop, fd, &op, 1);
}

static long semtimedop_timed(void)
{
	return do_semop(&long_time);
}

static long semtimedop_forever(void)
{
	return do_semop(NULL);
}

static long do_sigwait(const struct timespec *ts)
{
	uint64_t set = 1 << (SIGUSR2 - 1);
	return syscall(SYS_rt_sigtimedwait, &set, NULL, ts, 8);
}

static long sigwait_forever(void)
{
	return do_sigwait(NULL);
}

static long sigwait_timed(void)
{
	return do_sigwait(&long_time);
}

static aio_context_t aio;
static long do_getevents(const struct timespec *ts)
{
	struct io_event ev;
	return syscall(SYS_io_getevents, aio, 1, 1, &ev, ts);
}

static long getevents_forever(void)
{
	return do_getevents(NULL);
}

static long getevents_timed(void)
{
	return do_getevents(&long_time);
}

static long uring_enter(void)
{
	return syscall(SYS_io_uring_enter, fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 8);
}

static long accept_timed(void)
{
	return accept(fd, NULL, NULL);
}

static long recv_timed(void)
{
	char c;
	return recv(fd, &c, 1, 0);
}

static long recvmsg_timed(void)
{
	char c;
	struct iovec iov = {&c, 1};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	return recvmsg(fd, &msg, 0);
}

static long read_byte(void)
{
	char c;
	return read(fd, &c, 1);
}

static long send_full(void)
{
	static char bytes[1 << 16];
	return send(fd, bytes, sizeof(bytes), 0);
}

static long nanosleep_long(void)
{
	return nanosleep(&long_time, NULL);
}

static long futex_wait(void)
{
	return syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL);
}

static long futex_timed(void)
{
	return syscall(SYS_futex, &word, FUTEX_WAIT, 0, &long_time);
}

static long poll_timed(void)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	return poll(&p, 1, LONG_S * 1000);
}

static long ppoll_masked(void)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	uint64_t mask = 1 << (SIGUSR2 - 1);
	struct timespec ts = long_time;
	return syscall(SYS_ppoll, &p, 1, &ts, &mask, 8);
}

static long select_timed(void)
{
	fd_set set;
	struct timeval tv = {LONG_S, 0};
	FD_ZERO(&set);
	FD_SET(fd, &set);
	return select(fd + 1, &set, NULL, NULL, &tv);
}

static long pause_call(void)
{
	return pause();
}

static long sigsuspend_call(void)
{
	sigset_t set;
	sigemptyset(&set);
	return sigsuspend(&set);
}

static long msgrcv_call(void)
{
	struct {
		long type;
		char c;
	} m;
	return msgrcv(fd, &m, 1, 0, 0);
}

static long wait_call(void)
{
	return waitpid(-1, NULL, 0);
}

static long flock_call(void)
{
	return flock(fd, LOCK_EX);
}

/* ---- targets: how each prepares ----------------------------------------------------------------------------------------- */

static int sem_make(void)
{
	return semget(IPC_PRIVATE, 1, 0600);
}

static int uring_make(void)
{
	struct io_uring_params params = {0};
	return (int)syscall(SYS_io_uring_setup, 4, &params);
}

static int aio_make(void)
{
	return (int)syscall(SYS_io_setup, 1, &aio);
}

static int full_socket(void)
{
	int s = timed_socket(SOCK_STREAM, SO_SNDTIMEO);
	char bytes[4096] = {0};
	while (send(s, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	return s;
}

static int recv_socket(void)
{
	return timed_socket(SOCK_STREAM, SO_RCVTIMEO);
}

static int block_usr2(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return sigprocmask(SIG_BLOCK, &set, NULL);
}

static int block_usr1(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	return sigprocmask(SIG_BLOCK, &set, NULL);
}

static int child_make(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return 0;
}

static int locked_make(void)
{
	char path[] = "/tmp/dp-eintr-XXXXXX";
	int a = mkstemp(path), b = open(path, O_RDWR);
	unlink(path);
	flock(a, LOCK_EX);
	return b;
}

static int queue_make(void)
{
	return msgget(IPC_PRIVATE, 0600);
}

static int none_make(void)
{
	return 0;
}

static int (*make)(void);
static long (*call)(void);

static void target(void)
{
	fd = make();
	tr->value[0] = fd;
	tr->value[1] = fd < 0 ? errno : 0;
	loop(call);
}

/* ---- the storm ---------------------------------------------------------------------------------------------------------- */

static void freeze_once(const struct dp_process *p, int sig)
{
	struct dp_freeze f;
	tr_ok(dp_freeze_all(p, TR_LIMIT, &f));
	cr_assert_eq(f.n, 1);
	if (sig)
		kill(p->pid, sig);
	dp_thaw_all(&f);
}

static void borrow_once(const struct dp_process *p, bool timed, int sig)
{
	struct dp_borrow *b;
	struct dp_error *err = dp_borrow_begin(p, NULL, timed ? 20000000 : TR_LIMIT, false, &b);
	if (timed && err) {
		tr->value[2] += err->tag == DP_TAG_NO_THREAD;
		if (err->tag == DP_TAG_UNSTOPPABLE) /* it had no processor for 20 ms */
			dp_error_destroy(err);
		else
			tr_tag(err, DP_TAG_NO_THREAD);
		return;
	}
	tr_ok(err);
	cr_assert_eq(tr_remote(b, SYS_getpid, 0, 0, 0, 0, 0, 0), p->ns_pid);
	if (sig)
		kill(p->pid, sig);
	cr_assert_eq(tr_remote(b, SYS_getppid, 0, 0, 0, 0, 0, 0), getpid());
	tr_ok(dp_borrow_end(b, NULL));
}

static void await_interrupted(long n)
{
	cr_assert(tr_await_value(&tr->eintr, n), "the real signal did not interrupt the call");
	cr_assert(tr_await_value(&tr->calls, n)); /* the count follows a moment later */
	cr_assert_eq(tr->eintr, n);
	cr_assert_eq(tr->handled, n);
	cr_assert_eq(tr->calls, n);
}

static void storm(int (*m)(void), long (*c)(void), long nr, bool timed)
{
	make = m;
	call = c;
	pid_t pid = tr_spawn(target);
	if (tr->value[0] < 0)
		cr_skip_test("the kernel refuses to prepare this call: %s", strerror((int)tr->value[1]));
	cr_assert(tr_await(pid, 'S', nr), "not blocked: calls %ld, errno %ld", tr->calls, tr->failed_errno);
	struct dp_process p = tr_process(pid);
	for (int i = 0; i < 200; i++) {
		freeze_once(&p, 0);
		if (i % 2 && (!timed || tr_await(pid, 'S', nr)))
			borrow_once(&p, timed, 0);
		if (i % 8 == 0) /* mostly without a break, sometimes with time to block again */
			tr_sleep_us(200);
	}
	if (timed) /* refused, unless the thread was between two calls */
		cr_assert(tr->value[2] > 0, "every attempt borrowed a thread in a timed call");
	tr_sleep_us(2000);
	cr_assert_eq(tr->calls, 0, "returned %ld times, %ld of them EINTR, errno %ld", tr->calls, tr->eintr, tr->failed_errno);
	cr_assert(tr_await(pid, 'S', nr));
	freeze_once(&p, SIGUSR1);
	await_interrupted(1);
	if (!timed) {
		cr_assert(tr_await(pid, 'S', nr));
		borrow_once(&p, false, SIGUSR1);
		await_interrupted(2);
	}
	tr_kill(pid);
	if (nr == SYS_semop || nr == SYS_semtimedop)
		semctl((int)tr->value[0], 0, IPC_RMID);
	if (nr == SYS_msgrcv)
		msgctl((int)tr->value[0], IPC_RMID, NULL);
}

#define STORM(name, make_, call_, nr, timed)                                                                                     \
	Test(eintr, name)                                                                                                        \
	{                                                                                                                        \
		storm(make_, call_, nr, timed);                                                                                  \
	}

STORM(epoll_wait_forever, make_epoll, epoll_forever, SYS_epoll_wait, false)
STORM(epoll_wait_timed, make_epoll, epoll_timed, SYS_epoll_wait, true)
STORM(epoll_pwait_with_mask, make_epoll, epoll_pwait_masked, SYS_epoll_pwait, false)
STORM(epoll_pwait2_forever, make_epoll, epoll_pwait2_forever, 441, false)
STORM(semop_forever, sem_make, semop_forever, SYS_semop, false)
STORM(semtimedop_timed, sem_make, semtimedop_timed, SYS_semtimedop, true)
STORM(semtimedop_forever, sem_make, semtimedop_forever, SYS_semtimedop, false)
STORM(rt_sigtimedwait_forever, block_usr2, sigwait_forever, SYS_rt_sigtimedwait, false)
STORM(rt_sigtimedwait_timed, block_usr2, sigwait_timed, SYS_rt_sigtimedwait, true)
STORM(io_getevents_forever, aio_make, getevents_forever, SYS_io_getevents, false)
STORM(io_getevents_timed, aio_make, getevents_timed, SYS_io_getevents, true)
STORM(io_uring_enter, uring_make, uring_enter, SYS_io_uring_enter, false)
STORM(accept_with_rcvtimeo, listener, accept_timed, SYS_accept, true)
STORM(recv_with_rcvtimeo, recv_socket, recv_timed, SYS_recvfrom, true)
STORM(recvmsg_with_rcvtimeo, recv_socket, recvmsg_timed, SYS_recvmsg, true)
STORM(read_of_socket_with_rcvtimeo, recv_socket, read_byte, SYS_read, true)
STORM(send_with_sndtimeo, full_socket, send_full, SYS_sendto, true)
STORM(read_of_pipe, pipe_end, read_byte, SYS_read, false)
STORM(nanosleep_restart_block, none_make, nanosleep_long, SYS_clock_nanosleep, false)
STORM(futex_wait_forever, none_make, futex_wait, SYS_futex, false)
STORM(futex_wait_timed, none_make, futex_timed, SYS_futex, false)
STORM(poll_timed, pipe_end, poll_timed, SYS_poll, false)
STORM(ppoll_with_mask, pipe_end, ppoll_masked, SYS_ppoll, false)
STORM(select_timed, pipe_end, select_timed, SYS_pselect6, false)
STORM(pause_call, none_make, pause_call, SYS_pause, false)
STORM(sigsuspend_with_blocked_signal, block_usr1, sigsuspend_call, SYS_rt_sigsuspend, false)
STORM(msgrcv_call, queue_make, msgrcv_call, SYS_msgrcv, false)
STORM(wait_call, child_make, wait_call, SYS_wait4, false)
STORM(flock_call, locked_make, flock_call, SYS_flock, false)
