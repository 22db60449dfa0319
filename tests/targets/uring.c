/* SPDX-License-Identifier: MIT */
/*
 * uring [SQPOLL]: a program with kernel threads in it (io_uring). One ring has requests that block one worker each (a splice from
 * an empty pipe), and short requests all the time, so that workers start and end; with SQPOLL another ring has a polling thread.
 * A worker that is stopped makes its request fail with EINTR. No request may end before its pipe gets a byte; then each moves
 * that one byte.
 */
#include "target.h"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define ENTRIES 8u
#define BLOCKED 3
#define SHORT   100 /* user_data of a short request */

struct ring {
	int fd;
	uint32_t *sq_tail, *sq_flags, *cq_head, *cq_tail, cq_mask, sq_mask, *array;
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
	bool polled;
};

static int feed[BLOCKED], drain[BLOCKED];
static bool ended[BLOCKED];
static _Atomic long wrong;

static char *map(const struct ring *r, uint64_t what, size_t n)
{
	return mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r->fd, (off_t)what);
}

static bool ring_open(struct ring *r, bool polled)
{
	struct io_uring_params p = {.flags = polled ? IORING_SETUP_SQPOLL : 0, .sq_thread_idle = 20};
	r->polled = polled;
	r->fd = (int)syscall(SYS_io_uring_setup, ENTRIES, &p);
	if (r->fd < 0)
		return false;
	char *sq = map(r, IORING_OFF_SQ_RING, p.sq_off.array + p.sq_entries * sizeof(uint32_t));
	char *cq = map(r, IORING_OFF_CQ_RING, p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe));
	r->sqe = (void *)map(r, IORING_OFF_SQES, p.sq_entries * sizeof(struct io_uring_sqe));
	if (sq == MAP_FAILED || cq == MAP_FAILED || r->sqe == MAP_FAILED)
		return false;
	r->sq_tail = (void *)(sq + p.sq_off.tail);
	r->sq_flags = (void *)(sq + p.sq_off.flags);
	r->array = (void *)(sq + p.sq_off.array);
	r->sq_mask = *(uint32_t *)(void *)(sq + p.sq_off.ring_mask);
	r->cq_head = (void *)(cq + p.cq_off.head);
	r->cq_tail = (void *)(cq + p.cq_off.tail);
	r->cq_mask = *(uint32_t *)(void *)(cq + p.cq_off.ring_mask);
	r->cqe = (void *)(cq + p.cq_off.cqes);
	return true;
}

static void submit(struct ring *r, const struct io_uring_sqe *e)
{
	const uint32_t at = *r->sq_tail & r->sq_mask;
	r->sqe[at] = *e;
	r->array[at] = at;
	__atomic_store_n(r->sq_tail, *r->sq_tail + 1, __ATOMIC_SEQ_CST);
	if (!r->polled)
		wrong += syscall(SYS_io_uring_enter, r->fd, 1, 0, 0, NULL, 0) != 1;
	else if (__atomic_load_n(r->sq_flags, __ATOMIC_SEQ_CST) & IORING_SQ_NEED_WAKEUP)
		wrong += syscall(SYS_io_uring_enter, r->fd, 0, 0, IORING_ENTER_SQ_WAKEUP, NULL, 0) < 0;
}

struct end { /* of a request */
	uint64_t which;
	int res;
};

static struct end await(struct ring *r)
{
	const uint32_t head = *r->cq_head;
	while (head == __atomic_load_n(r->cq_tail, __ATOMIC_ACQUIRE))
		target_sleep_us(100);
	const struct io_uring_cqe *c = &r->cqe[head & r->cq_mask];
	const struct end e = {c->user_data, c->res};
	__atomic_store_n(r->cq_head, head + 1, __ATOMIC_RELEASE);
	return e;
}

static void block_worker(struct ring *r, int i)
{
	int in[2], out[2];
	if (pipe(in) || pipe(out))
		exit(2);
	feed[i] = in[1];
	drain[i] = out[0];
	submit(r, &(struct io_uring_sqe){.opcode = IORING_OP_SPLICE,
	                                 .flags = IOSQE_ASYNC,
	                                 .fd = out[1],
	                                 .len = 1,
	                                 .off = UINT64_MAX,
	                                 .splice_off_in = UINT64_MAX,
	                                 .splice_fd_in = in[0],
	                                 .user_data = (uint64_t)i});
}

/* Waits for this request; no other may end. */
static void expect(struct ring *r, uint64_t which, int res)
{
	for (;;) {
		const struct end e = await(r);
		const bool right = e.which == which && e.res == res;
		wrong += !right;
		if (!right)
			fprintf(stderr, "request %d ended with %d\n", (int)e.which, e.res);
		if (e.which < BLOCKED)
			ended[e.which] = true;
		if (e.which == which)
			return;
	}
}

static void short_request(struct ring *r)
{
	submit(r, &(struct io_uring_sqe){.opcode = IORING_OP_NOP, .flags = IOSQE_ASYNC, .user_data = SHORT});
	expect(r, SHORT, 0);
}

static void feed_worker(struct ring *r, int i)
{
	char byte = (char)i;
	if (ended[i])
		return;
	wrong += write(feed[i], &byte, 1) != 1;
	expect(r, (uint64_t)i, 1);
	wrong += read(drain[i], &byte, 1) != 1 || byte != (char)i;
}

TARGET_PROBED unsigned foo(unsigned a)
{
	return a * 3 + 1;
}

static void *call_foo(void *arg)
{
	while (!target_stop) {
		wrong += foo(5) != 16;
		target_sleep_us(500);
	}
	return arg;
}

int main(int argc, char **argv)
{
	static struct ring ring, polled;
	const bool poll = target_number(argc, argv, 1, 0);
	pthread_t thread[2];
	target_stop_on_term();
	if (!ring_open(&ring, false) || (poll && !ring_open(&polled, true))) {
		printf("READY %d\nNO IO_URING: %s\n", (int)getpid(), strerror(errno));
		return 77;
	}
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, call_foo, NULL);
	for (int i = 0; i < BLOCKED; i++)
		block_worker(&ring, i);
	short_request(&ring);
	if (poll)
		short_request(&polled);
	target_ready();
	for (uint64_t n = 0; !target_stop; n++) {
		short_request(&ring);
		if (poll && n % 16 == 0) /* long enough for the polling thread to fall asleep */
			short_request(&polled);
		target_sleep_us(3000);
	}
	for (int i = 0; i < BLOCKED; i++)
		feed_worker(&ring, i);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	printf("RESULT %s wrong %ld\n", wrong ? "BAD" : "OK", (long)wrong);
	return wrong != 0;
}
