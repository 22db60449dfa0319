/* SPDX-License-Identifier: MIT */
#include "waits.h"
#include "target.h"

#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

static const struct timespec nap = {0, NAP_MS * 1000000};

/* ---- descriptors that a feeder makes ready --------------------------------------------------------------------------- */

struct feed {
	int fd;
	const void *bytes;
	size_t n;
};

static void *feeder(void *arg)
{
	struct feed *f = arg;
	for (;;) {
		target_sleep_us(NAP_MS * 1000);
		if (write(f->fd, f->bytes, f->n) < 0)
			return NULL;
	}
}

static int feed(int fd, const void *bytes, size_t n)
{
	pthread_t t;
	struct feed *f = malloc(sizeof *f);
	*f = (struct feed){fd, bytes, n};
	return pthread_create(&t, NULL, feeder, f);
}

static int pipe_prepare(struct wait_state *s)
{
	int p[2];
	if (pipe(p) != 0)
		return -1;
	s->fd = p[0];
	return feed(p[1], "x", 1);
}

static long pipe_read(struct wait_state *s)
{
	char c;
	return read(s->fd, &c, 1);
}

static int socket_prepare(struct wait_state *s)
{
	int p[2];
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, p) != 0)
		return -1;
	s->fd = p[0];
	return feed(p[1], "x", 1);
}

static long socket_recv(struct wait_state *s)
{
	char c;
	return recv(s->fd, &c, 1, 0);
}

static long socket_recvmsg(struct wait_state *s)
{
	char c;
	struct iovec v = {&c, 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
	return recvmsg(s->fd, &m, 0);
}

static int eventfd_prepare(struct wait_state *s)
{
	static const uint64_t one = 1;
	s->fd = eventfd(0, 0);
	return s->fd < 0 ? -1 : feed(s->fd, &one, 8);
}

static long read8(struct wait_state *s)
{
	uint64_t v;
	return read(s->fd, &v, 8);
}

static int timerfd_prepare(struct wait_state *s)
{
	struct itimerspec every = {nap, nap};
	s->fd = timerfd_create(CLOCK_MONOTONIC, 0);
	return s->fd < 0 ? -1 : timerfd_settime(s->fd, 0, &every, NULL);
}

static int inotify_prepare(struct wait_state *s)
{
	char path[] = "/tmp/dp-inotify-XXXXXX";
	int file = mkstemp(path);
	s->fd = inotify_init();
	if (file < 0 || s->fd < 0 || inotify_add_watch(s->fd, path, IN_MODIFY) < 0)
		return -1;
	unlink(path);
	return feed(file, "x", 1);
}

static long inotify_read(struct wait_state *s)
{
	char buf[4096];
	return read(s->fd, buf, sizeof buf);
}

/* ---- timed waits without a descriptor ----------------------------------------------------------------------------------- */

static int epoll_prepare(struct wait_state *s)
{
	s->fd = epoll_create1(0);
	return s->fd < 0 ? -1 : 0;
}

static long epoll_timed(struct wait_state *s)
{
	struct epoll_event ev;
	return epoll_wait(s->fd, &ev, 1, NAP_MS);
}

static int epoll_forever_prepare(struct wait_state *s)
{
	if (timerfd_prepare(s) != 0)
		return -1;
	s->fd2 = s->fd;
	s->fd = epoll_create1(0);
	struct epoll_event ev = {.events = EPOLLIN};
	return epoll_ctl(s->fd, EPOLL_CTL_ADD, s->fd2, &ev);
}

static long epoll_forever(struct wait_state *s)
{
	struct epoll_event ev;
	uint64_t v;
	long r = epoll_wait(s->fd, &ev, 1, -1);
	return r < 0 ? r : read(s->fd2, &v, 8);
}

static long poll_timed(struct wait_state *s)
{
	(void)s;
	return poll(NULL, 0, NAP_MS);
}

static long ppoll_timed(struct wait_state *s)
{
	(void)s;
	return ppoll(NULL, 0, &nap, NULL);
}

static long select_timed(struct wait_state *s)
{
	struct timeval tv = {0, NAP_MS * 1000};
	(void)s;
	return select(0, NULL, NULL, NULL, &tv);
}

static long nanosleep_once(struct wait_state *s)
{
	(void)s;
	return nanosleep(&nap, NULL);
}

static long clock_nanosleep_once(struct wait_state *s)
{
	(void)s;
	errno = clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
	return errno ? -1 : 0;
}

static long futex_timed(struct wait_state *s)
{
	static uint32_t word;
	(void)s;
	return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &nap, NULL, 0);
}

static long sigtimedwait_once(struct wait_state *s)
{
	sigset_t set;
	(void)s;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 3);
	return syscall(SYS_rt_sigtimedwait, &set, NULL, &nap, 8);
}

/* ---- System V, message queues ------------------------------------------------------------------------------------------- */

/* The kernel keeps these objects when the process ends. */
static int semaphores[2] = {-1, -1}, queue = -1;

void waits_cleanup(void)
{
	for (int i = 0; i < 2; i++)
		if (semaphores[i] >= 0)
			semctl(semaphores[i], 0, IPC_RMID);
	if (queue >= 0)
		msgctl(queue, IPC_RMID, NULL);
}

static int sem_prepare(struct wait_state *s)
{
	static _Atomic int n;
	s->handle = semget(IPC_PRIVATE, 1, 0600);
	if (s->handle < 0)
		return -1;
	semaphores[n++] = (int)s->handle;
	return 0;
}

static long semtimedop_once(struct wait_state *s)
{
	struct sembuf down = {0, -1, 0};
	return semtimedop((int)s->handle, &down, 1, &nap);
}

static void *sem_feeder(void *arg)
{
	struct sembuf up = {0, 1, 0};
	for (;;) {
		target_sleep_us(NAP_MS * 1000);
		if (semop((int)(long)arg, &up, 1) != 0)
			return NULL;
	}
}

static int sem_fed_prepare(struct wait_state *s)
{
	pthread_t t;
	return sem_prepare(s) != 0 ? -1 : pthread_create(&t, NULL, sem_feeder, (void *)s->handle);
}

static long semop_once(struct wait_state *s)
{
	struct sembuf down = {0, -1, 0};
	return semop((int)s->handle, &down, 1);
}

static void *msg_feeder(void *arg)
{
	struct {
		long type;
		char c;
	} m = {1, 'x'};
	for (;;) {
		target_sleep_us(NAP_MS * 1000);
		if (msgsnd((int)(long)arg, &m, 1, 0) != 0)
			return NULL;
	}
}

static int msg_prepare(struct wait_state *s)
{
	pthread_t t;
	queue = msgget(IPC_PRIVATE, 0600);
	s->handle = queue;
	return s->handle < 0 ? -1 : pthread_create(&t, NULL, msg_feeder, (void *)s->handle);
}

static long msgrcv_once(struct wait_state *s)
{
	struct {
		long type;
		char c[8];
	} m;
	return msgrcv((int)s->handle, &m, sizeof m.c, 0, 0);
}

static int mq_prepare(struct wait_state *s)
{
	char name[64];
	struct mq_attr attr = {.mq_maxmsg = 1, .mq_msgsize = 8};
	snprintf(name, sizeof name, "/dp-test-%d", (int)getpid());
	s->fd = mq_open(name, O_RDWR | O_CREAT, 0600, &attr);
	mq_unlink(name);
	return s->fd < 0 ? -1 : 0;
}

static long mq_once(struct wait_state *s)
{
	char buf[8];
	struct timespec at;
	clock_gettime(CLOCK_REALTIME, &at);
	at.tv_nsec += nap.tv_nsec;
	at.tv_sec += at.tv_nsec / 1000000000;
	at.tv_nsec %= 1000000000;
	return mq_timedreceive(s->fd, buf, sizeof buf, NULL, &at);
}

/* ---- children, asynchronous input and output -------------------------------------------------------------------------- */

static long wait_once(struct wait_state *s)
{
	(void)s;
	pid_t pid = fork();
	if (pid == 0) {
		struct timespec ts = nap;
		nanosleep(&ts, NULL);
		_exit(0);
	}
	return pid < 0 ? -1 : waitpid(pid, NULL, 0);
}

static int aio_prepare(struct wait_state *s)
{
	aio_context_t ctx = 0;
	if (syscall(SYS_io_setup, 4, &ctx) != 0)
		return -1;
	s->handle = (long)ctx;
	return 0;
}

static long aio_once(struct wait_state *s)
{
	struct io_event ev;
	struct timespec ts = nap;
	return syscall(SYS_io_getevents, s->handle, 1, 1, &ev, &ts);
}

enum { RING_SQ, RING_CQ, RING_SQES };

static int uring_prepare(struct wait_state *s)
{
	struct io_uring_params p = {0};
	s->fd = (int)syscall(SYS_io_uring_setup, 4, &p);
	if (s->fd < 0)
		return -1;
	char *sq = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, IORING_OFF_SQ_RING);
	char *cq = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, IORING_OFF_CQ_RING);
	s->ring[RING_SQES] = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, IORING_OFF_SQES);
	if (sq == MAP_FAILED || cq == MAP_FAILED || s->ring[RING_SQES] == MAP_FAILED)
		return -1;
	for (uint32_t i = 0; i < p.sq_entries; i++)
		((uint32_t *)(sq + p.sq_off.array))[i] = 0; /* every submission uses entry 0 */
	s->ring[RING_SQ] = sq + p.sq_off.tail;
	s->ring[RING_CQ] = cq + p.cq_off.head;
	return 0;
}

static long uring_once(struct wait_state *s)
{
	struct timespec ts = nap;
	struct io_uring_sqe *e = s->ring[RING_SQES];
	uint32_t *tail = s->ring[RING_SQ], *head = s->ring[RING_CQ];

	memset(e, 0, sizeof *e);
	e->opcode = IORING_OP_TIMEOUT;
	e->addr = (uintptr_t)&ts;
	e->len = 1;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, s->fd, 1, 0, 0, NULL, 0) != 1)
		return 0; /* not the call under test */
	long r = syscall(SYS_io_uring_enter, s->fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0);
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return r;
}

const struct wait_kind wait_kinds[] = {
        {"read pipe", pipe_prepare, pipe_read},
        {"recv", socket_prepare, socket_recv},
        {"recvmsg", socket_prepare, socket_recvmsg},
        {"read eventfd", eventfd_prepare, read8},
        {"read timerfd", timerfd_prepare, read8},
        {"read inotify", inotify_prepare, inotify_read},
        {"epoll_wait timed", epoll_prepare, epoll_timed},
        {"epoll_wait forever", epoll_forever_prepare, epoll_forever},
        {"poll", NULL, poll_timed},
        {"ppoll", NULL, ppoll_timed},
        {"select", NULL, select_timed},
        {"nanosleep", NULL, nanosleep_once},
        {"clock_nanosleep", NULL, clock_nanosleep_once},
        {"futex", NULL, futex_timed},
        {"rt_sigtimedwait", NULL, sigtimedwait_once},
        {"semtimedop", sem_prepare, semtimedop_once},
        {"semop", sem_fed_prepare, semop_once},
        {"msgrcv", msg_prepare, msgrcv_once},
        {"mq_timedreceive", mq_prepare, mq_once},
        {"wait4", NULL, wait_once},
        {"io_getevents", aio_prepare, aio_once},
        {"io_uring_enter", uring_prepare, uring_once},
};
const size_t wait_kinds_n = sizeof wait_kinds / sizeof wait_kinds[0];

/* ---- waits for a handled signal --------------------------------------------------------------------------------------- */

static long by_sigsuspend(const sigset_t *mask)
{
	return sigsuspend(mask);
}

static long by_ppoll(const sigset_t *mask)
{
	return ppoll(NULL, 0, NULL, mask);
}

static long by_epoll_pwait(const sigset_t *mask)
{
	static __thread int ep = -1;
	struct epoll_event ev;
	if (ep < 0)
		ep = epoll_create1(0);
	return epoll_pwait(ep, &ev, 1, -1, mask);
}

const struct signal_wait signal_waits[] = {
        {"sigsuspend", by_sigsuspend},
        {"ppoll with a mask", by_ppoll},
        {"epoll_pwait with a mask", by_epoll_pwait},
};
const size_t signal_waits_n = sizeof signal_waits / sizeof signal_waits[0];
