/* SPDX-License-Identifier: MIT */
/* Calls that wait for time and for other processes: futexes, signals, children, queues, locks. */
#include "helper_blocking_made.h"

#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <mqueue.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LONG_S 1000
static const struct timespec long_time = {LONG_S, 0};
static const struct timeval long_val = {LONG_S, 0};
static struct timespec end_time; /* the same, absolute */
static int fd, key = -1;
static uint32_t word, target_word;
static char byte, room[64];
static char path[64];

static int nothing(void)
{
	return 0;
}

static int set_end(clockid_t clock)
{
	clock_gettime(clock, &end_time);
	end_time.tv_sec += LONG_S;
	return 0;
}

static int until_monotonic(void)
{
	return set_end(CLOCK_MONOTONIC);
}

static int until_real(void)
{
	return set_end(CLOCK_REALTIME);
}

/* ---- readiness -------------------------------------------------------------------------------------------- */

static int make_epoll(void)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int p[2];
	fd = epoll_create1(0);
	return pipe(p) || epoll_ctl(fd, EPOLL_CTL_ADD, p[0], &ev) ? -1 : fd;
}

static struct epoll_event event;
static const uint64_t some_mask = 1 << (SIGUSR2 - 1);

BLOCKING_CALL(epoll_ever, SYS_epoll_wait, fd, &event, 1, -1)
BLOCKING_CALL(epoll_until, SYS_epoll_wait, fd, &event, 1, LONG_S * 1000)
BLOCKING_CALL(epoll_pwait_ever, SYS_epoll_pwait, fd, &event, 1, -1, &some_mask, 8)
BLOCKING_CALL(epoll_pwait_until, SYS_epoll_pwait, fd, &event, 1, LONG_S * 1000, &some_mask, 8)
BLOCKING_CALL(epoll_pwait2_ever, 441, fd, &event, 1, NULL, NULL, 8)
BLOCKING_CALL(epoll_pwait2_until, 441, fd, &event, 1, &long_time, NULL, 8)

static struct pollfd polled;
BLOCKING_CALL(poll_ever, SYS_poll, &polled, 0, -1)
BLOCKING_CALL(poll_until, SYS_poll, &polled, 0, LONG_S * 1000)
BLOCKING_CALL(ppoll_ever, SYS_ppoll, &polled, 0, NULL, &some_mask, 8)

static long ppoll_until(void)
{
	struct timespec ts = long_time;
	return syscall(SYS_ppoll, &polled, 0, &ts, &some_mask, 8);
}
BLOCKING_CALL(select_ever, SYS_select, 0, NULL, NULL, NULL, NULL)

static long select_until(void)
{
	struct timeval tv = long_val;
	return syscall(SYS_select, 0, NULL, NULL, NULL, &tv);
}
BLOCKING_CALL(pselect_ever, SYS_pselect6, 0, NULL, NULL, NULL, NULL, NULL)

static long pselect_until(void)
{
	struct timespec ts = long_time;
	return syscall(SYS_pselect6, 0, NULL, NULL, NULL, &ts, NULL);
}

/* ---- time, futexes, signals, children --------------------------------------------------------------------- */

BLOCKING_CALL(nanosleep_until, SYS_nanosleep, &long_time, NULL)
BLOCKING_CALL(clock_nanosleep_for, SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &long_time, NULL)
BLOCKING_CALL(clock_nanosleep_until, SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &end_time, NULL)
BLOCKING_CALL(cpu_nanosleep, SYS_clock_nanosleep, CLOCK_PROCESS_CPUTIME_ID, 0, &long_time, NULL)
BLOCKING_CALL(futex_ever, SYS_futex, &word, FUTEX_WAIT, 0, NULL)
BLOCKING_CALL(futex_for, SYS_futex, &word, FUTEX_WAIT, 0, &long_time)
BLOCKING_CALL(futex_bitset_ever, SYS_futex, &word, FUTEX_WAIT_BITSET, 0, NULL, NULL, ~0u)
BLOCKING_CALL(futex_bitset_until, SYS_futex, &word, FUTEX_WAIT_BITSET, 0, &end_time, NULL, ~0u)
BLOCKING_CALL(futex_requeue_ever, SYS_futex, &word, FUTEX_WAIT_REQUEUE_PI, 0, NULL, &target_word)
BLOCKING_CALL(futex_requeue_until, SYS_futex, &word, FUTEX_WAIT_REQUEUE_PI, 0, &end_time, &target_word)
BLOCKING_CALL(futex_pi_ever, SYS_futex, &word, FUTEX_LOCK_PI, 0, NULL)
BLOCKING_CALL(futex_pi_until, SYS_futex, &word, FUTEX_LOCK_PI, 0, &end_time)
BLOCKING_CALL(futex_wait_ever, 455, &word, 0, ~0u, 2, NULL, CLOCK_MONOTONIC)
BLOCKING_CALL(futex_wait_until, 455, &word, 0, ~0u, 2, &end_time, CLOCK_MONOTONIC)

static long futex_waitv(const struct timespec *until)
{
	const struct {
		uint64_t val, uaddr;
		uint32_t flags, reserved;
	} one = {0, (uint64_t)(uintptr_t)&word, 2, 0};
	return syscall(449, &one, 1, 0, until, CLOCK_MONOTONIC);
}

static long futex_waitv_ever(void)
{
	return futex_waitv(NULL);
}

static long futex_waitv_until(void)
{
	return futex_waitv(&end_time);
}

/* A child that calls `first` and then does nothing, for as long as we live. */
static pid_t idle_child(int (*first)(void))
{
	const pid_t parent = getpid(), pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || first())
		_exit(1);
	for (;;)
		pause();
}

/* Another process owns it, and never releases it. */
static int held_futex(void)
{
	word = (uint32_t)idle_child(nothing);
	return until_real();
}

static int block_usr2(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return sigprocmask(SIG_BLOCK, &set, NULL);
}
BLOCKING_CALL(sigwait_ever, SYS_rt_sigtimedwait, &some_mask, NULL, NULL, 8)
BLOCKING_CALL(sigwait_until, SYS_rt_sigtimedwait, &some_mask, NULL, &long_time, 8)
BLOCKING_CALL(pause_ever, SYS_pause)
BLOCKING_CALL(sigsuspend_ever, SYS_rt_sigsuspend, &some_mask, 8)

static int make_child(void)
{
	return fd = (int)syscall(SYS_pidfd_open, idle_child(nothing), 0);
}
BLOCKING_CALL(wait4_ever, SYS_wait4, -1, NULL, 0, NULL)
BLOCKING_CALL(waitid_ever, SYS_waitid, P_ALL, 0, NULL, WEXITED, NULL)
BLOCKING_CALL(waitid_pidfd, SYS_waitid, 3, fd, NULL, WEXITED, NULL)

/* ---- System V, message queues, asynchronous input and output ---------------------------------------------- */

static int make_semaphore(void)
{
	key = semget(IPC_PRIVATE, 1, 0600);
	return key;
}

static struct sembuf down = {0, -1, 0};
BLOCKING_CALL(semop_ever, SYS_semop, key, &down, 1)
BLOCKING_CALL(semtimedop_ever, SYS_semtimedop, key, &down, 1, NULL)
BLOCKING_CALL(semtimedop_until, SYS_semtimedop, key, &down, 1, &long_time)

static struct {
	long type;
	char text[4096];
} message = {1, ""};

static int make_queue(void)
{
	return key = msgget(IPC_PRIVATE, 0600);
}

static int make_full_queue(void)
{
	make_queue();
	while (!msgsnd(key, &message, sizeof(message.text), IPC_NOWAIT))
		;
	return key;
}
BLOCKING_CALL(msgrcv_ever, SYS_msgrcv, key, &message, sizeof(message.text), 0, 0)
BLOCKING_CALL(msgsnd_ever, SYS_msgsnd, key, &message, sizeof(message.text), 0)

static int make_mq(void)
{
	char name[64];
	struct mq_attr attr = {.mq_maxmsg = 1, .mq_msgsize = 8};
	snprintf(name, sizeof(name), "/dp-blocking-%d", (int)getpid());
	fd = mq_open(name, O_RDWR | O_CREAT, 0600, &attr);
	mq_unlink(name);
	return fd < 0 ? -1 : until_real();
}

static int make_full_mq(void)
{
	return make_mq() < 0 || mq_send(fd, &byte, 1, 0) ? -1 : 0;
}
BLOCKING_CALL(mq_receive_ever, SYS_mq_timedreceive, fd, room, 8, NULL, NULL)
BLOCKING_CALL(mq_receive_until, SYS_mq_timedreceive, fd, room, 8, NULL, &end_time)
BLOCKING_CALL(mq_send_ever, SYS_mq_timedsend, fd, room, 8, 0, NULL)
BLOCKING_CALL(mq_send_until, SYS_mq_timedsend, fd, room, 8, 0, &end_time)

static aio_context_t aio;
static struct io_event io_event;

static int make_aio(void)
{
	return (int)syscall(SYS_io_setup, 1, &aio);
}

static long getevents_until(void)
{
	struct timespec ts = long_time;
	return syscall(SYS_io_getevents, aio, 1, 1, &io_event, &ts);
}
BLOCKING_CALL(getevents_ever, SYS_io_getevents, aio, 1, 1, &io_event, NULL)
BLOCKING_CALL(pgetevents_ever, 333, aio, 1, 1, &io_event, NULL, NULL)
BLOCKING_CALL(pgetevents_until, 333, aio, 1, 1, &io_event, &long_time, NULL)

static int make_uring(void)
{
	struct io_uring_params p = {0};
	return fd = (int)syscall(SYS_io_uring_setup, 4, &p);
}
BLOCKING_CALL(uring_ever, SYS_io_uring_enter, fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 8)

static long uring_until(void)
{
	struct __kernel_timespec ts = {LONG_S, 0};
	struct io_uring_getevents_arg arg = {.ts = (uint64_t)(uintptr_t)&ts};
	return syscall(SYS_io_uring_enter, fd, 0, 1, IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &arg, sizeof(arg));
}

/* ---- files ------------------------------------------------------------------------------------------------ */

static int holder, told[2]; /* another descriptor of the file; the lock's holder writes to the pipe */

static int two_files(void)
{
	char name[] = "/tmp/dp-blocking-XXXXXX";
	holder = mkstemp(name);
	fd = open(name, O_RDWR);
	unlink(name);
	return fd;
}

static int flocked(void)
{
	return two_files() < 0 || flock(holder, LOCK_EX) ? -1 : fd;
}

static int lock_and_tell(void)
{
	struct flock l = {.l_type = F_WRLCK};
	return fcntl(holder, F_SETLK, &l) || write(told[1], "x", 1) != 1;
}

/* Another process holds the lock: a process does not wait for its own. */
static int locked(void)
{
	if (two_files() < 0 || pipe(told))
		return -1;
	idle_child(lock_and_tell);
	close(told[1]);
	return read(told[0], &byte, 1) == 1 ? fd : -1;
}

static int ofd_locked(void)
{
	struct flock l = {.l_type = F_WRLCK};
	return two_files() < 0 || fcntl(holder, F_OFD_SETLK, &l) ? -1 : fd;
}

static struct flock want = {.l_type = F_WRLCK};
BLOCKING_CALL(flock_ever, SYS_flock, fd, LOCK_EX)
BLOCKING_CALL(setlkw_ever, SYS_fcntl, fd, F_SETLKW, &want)
BLOCKING_CALL(ofd_setlkw_ever, SYS_fcntl, fd, F_OFD_SETLKW, &want)

static void name_path(pid_t pid)
{
	snprintf(path, sizeof(path), "/tmp/dp-blocking-%d", (int)pid);
	unlink(path);
}

static int make_fifo(void)
{
	name_path(getpid());
	return mkfifo(path, 0600);
}

/* open() waits until the holder gives the lease up, which never happens. */
static int leased(void)
{
	name_path(getpid());
	signal(SIGIO, SIG_IGN);
	holder = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	return holder < 0 ? -1 : fcntl(holder, F_SETLEASE, F_WRLCK);
}
BLOCKING_CALL(open_to_read, SYS_openat, AT_FDCWD, path, O_RDONLY, 0)
BLOCKING_CALL(open_to_write, SYS_openat, AT_FDCWD, path, O_WRONLY, 0)
BLOCKING_CALL(open_old, SYS_open, path, O_RDONLY, 0)

/* ---- the supervisor of a system call filter ---------------------------------------------------------------- */

static int make_supervisor(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog prog = {1, &allow};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);
}

static long notified(void)
{
	struct seccomp_notif n = {0};
	return ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &n);
}

static const struct blocking table[] = {
        {"epoll_ever of make_epoll", SYS_epoll_wait, make_epoll, epoll_ever, false},
        {"epoll_until of make_epoll", SYS_epoll_wait, make_epoll, epoll_until, true},
        {"epoll_pwait_ever of make_epoll", SYS_epoll_pwait, make_epoll, epoll_pwait_ever, false},
        {"epoll_pwait_until of make_epoll", SYS_epoll_pwait, make_epoll, epoll_pwait_until, true},
        {"epoll_pwait2_ever of make_epoll", 441, make_epoll, epoll_pwait2_ever, false},
        {"epoll_pwait2_until of make_epoll", 441, make_epoll, epoll_pwait2_until, true},
        {"poll_ever of nothing", SYS_poll, nothing, poll_ever, false},
        {"poll_until of nothing", SYS_poll, nothing, poll_until, true},
        {"ppoll_ever of nothing", SYS_ppoll, nothing, ppoll_ever, false},
        {"ppoll_until of nothing", SYS_ppoll, nothing, ppoll_until, true},
        {"select_ever of nothing", SYS_select, nothing, select_ever, false},
        {"select_until of nothing", SYS_select, nothing, select_until, true},
        {"pselect_ever of nothing", SYS_pselect6, nothing, pselect_ever, false},
        {"pselect_until of nothing", SYS_pselect6, nothing, pselect_until, true},
        {"nanosleep_until of nothing", SYS_nanosleep, nothing, nanosleep_until, true},
        {"clock_nanosleep_for of nothing", SYS_clock_nanosleep, nothing, clock_nanosleep_for, true},
        {"clock_nanosleep_until of until_monotonic", SYS_clock_nanosleep, until_monotonic, clock_nanosleep_until, true},
        {"cpu_nanosleep of nothing", SYS_clock_nanosleep, nothing, cpu_nanosleep, true},
        {"futex_ever of nothing", SYS_futex, nothing, futex_ever, false},
        {"futex_for of nothing", SYS_futex, nothing, futex_for, true},
        {"futex_bitset_ever of nothing", SYS_futex, nothing, futex_bitset_ever, false},
        {"futex_bitset_until of until_monotonic", SYS_futex, until_monotonic, futex_bitset_until, true},
        {"futex_requeue_ever of nothing", SYS_futex, nothing, futex_requeue_ever, false},
        {"futex_requeue_until of until_monotonic", SYS_futex, until_monotonic, futex_requeue_until, true},
        {"futex_pi_ever of held_futex", SYS_futex, held_futex, futex_pi_ever, false},
        {"futex_pi_until of held_futex", SYS_futex, held_futex, futex_pi_until, true},
        {"futex_waitv_ever of nothing", 449, nothing, futex_waitv_ever, false},
        {"futex_waitv_until of until_monotonic", 449, until_monotonic, futex_waitv_until, true},
        {"futex_wait_ever of nothing", 455, nothing, futex_wait_ever, false},
        {"futex_wait_until of until_monotonic", 455, until_monotonic, futex_wait_until, true},
        {"sigwait_ever of block_usr2", SYS_rt_sigtimedwait, block_usr2, sigwait_ever, false},
        {"sigwait_until of block_usr2", SYS_rt_sigtimedwait, block_usr2, sigwait_until, true},
        {"pause_ever of nothing", SYS_pause, nothing, pause_ever, false},
        {"sigsuspend_ever of nothing", SYS_rt_sigsuspend, nothing, sigsuspend_ever, false},
        {"wait4_ever of make_child", SYS_wait4, make_child, wait4_ever, false},
        {"waitid_ever of make_child", SYS_waitid, make_child, waitid_ever, false},
        {"waitid_pidfd of make_child", SYS_waitid, make_child, waitid_pidfd, false},
        {"semop_ever of make_semaphore", SYS_semop, make_semaphore, semop_ever, false},
        {"semtimedop_ever of make_semaphore", SYS_semtimedop, make_semaphore, semtimedop_ever, false},
        {"semtimedop_until of make_semaphore", SYS_semtimedop, make_semaphore, semtimedop_until, true},
        {"msgrcv_ever of make_queue", SYS_msgrcv, make_queue, msgrcv_ever, false},
        {"msgsnd_ever of make_full_queue", SYS_msgsnd, make_full_queue, msgsnd_ever, false},
        {"mq_receive_ever of make_mq", SYS_mq_timedreceive, make_mq, mq_receive_ever, false},
        {"mq_receive_until of make_mq", SYS_mq_timedreceive, make_mq, mq_receive_until, true},
        {"mq_send_ever of make_full_mq", SYS_mq_timedsend, make_full_mq, mq_send_ever, false},
        {"mq_send_until of make_full_mq", SYS_mq_timedsend, make_full_mq, mq_send_until, true},
        {"getevents_ever of make_aio", SYS_io_getevents, make_aio, getevents_ever, false},
        {"getevents_until of make_aio", SYS_io_getevents, make_aio, getevents_until, true},
        {"pgetevents_ever of make_aio", 333, make_aio, pgetevents_ever, false},
        {"pgetevents_until of make_aio", 333, make_aio, pgetevents_until, true},
        {"uring_ever of make_uring", SYS_io_uring_enter, make_uring, uring_ever, false},
        {"uring_until of make_uring", SYS_io_uring_enter, make_uring, uring_until, true},
        {"flock_ever of flocked", SYS_flock, flocked, flock_ever, false},
        {"setlkw_ever of locked", SYS_fcntl, locked, setlkw_ever, false},
        {"ofd_setlkw_ever of ofd_locked", SYS_fcntl, ofd_locked, ofd_setlkw_ever, false},
        {"open_to_read of make_fifo", SYS_openat, make_fifo, open_to_read, false},
        {"open_to_write of make_fifo", SYS_openat, make_fifo, open_to_write, false},
        {"open_old of make_fifo", SYS_open, make_fifo, open_old, false},
        {"open_to_read of leased", SYS_openat, leased, open_to_read, false},
        {"notified of make_supervisor", SYS_ioctl, make_supervisor, notified, false},
};

const struct blocking *blocking_waits(size_t *n)
{
	*n = sizeof(table) / sizeof(*table);
	return table;
}

void blocking_remove(const struct blocking *b, int made, pid_t pid)
{
	if (b->make == make_semaphore)
		semctl(made, 0, IPC_RMID);
	if (b->make == make_queue || b->make == make_full_queue)
		msgctl(made, IPC_RMID, NULL);
	if (b->make == make_fifo || b->make == leased)
		name_path(pid);
}
