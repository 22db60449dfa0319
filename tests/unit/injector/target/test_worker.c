/* SPDX-License-Identifier: MIT */
/*
 * Kernel threads of the program (io_uring): they are recognised by their flags, and never stopped, borrowed or waited for. A
 * stop would make such a thread's request fail.
 */
#include "helper_tracee.h"

#include "injector/target/target.h"
#include "injector/tracee/stop/freeze.h"
#include "injector/tracee/proc/proc.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCKED 3
#define ENTRIES 8

/* ---- recognising them --------------------------------------------------------------------------------------------------- */

/* A line as the kernel writes it, with these flags. */
static uint64_t flags_in(const char *comm, unsigned flags)
{
	char text[512];
	struct dp_task_stat stat = {0};
	snprintf(text, sizeof(text),
	         "5156 (%s) S 4999 5154 4999 34816 5154 %u 0 0 0 0 0 0 0 0 20 0 3 0 1234567 2789376 400 18446744073709551615 "
	         "1 1 0 0 0 0 18446744073708503807 6 0 1 0 0 -1 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
	         comm, flags);
	cr_assert(dp_stat_parse(text, &stat));
	cr_assert_eq(stat.state, 'S');
	cr_assert_eq(stat.ppid, 4999);
	cr_assert_eq(stat.start_time, 1234567);
	return stat.flags;
}

Test(worker, a_stat_line_without_its_end_or_with_negative_numbers)
{
	const char line[] =
	        "7 (a b) R -1 7 7 -1 -1 4194304 1 2 3 4 5 6 7 8 -20 0 1 0 99 18446744073709551615 400 1 2 3 140737488351744 8";
	struct dp_task_stat stat;
	cr_assert(dp_stat_parse(line, &stat));
	cr_expect_eq(stat.state, 'R');
	cr_expect_eq(stat.ppid, -1);
	cr_expect_eq(stat.flags, 4194304);
	cr_expect_eq(stat.start_time, 99);
	cr_expect_eq(stat.memory, UINT64_MAX);
	cr_expect_eq(stat.start_stack, 140737488351744);
	char cut[sizeof(line)] = "";
	for (size_t n = 0; n < sizeof(line); n++) {
		memcpy(cut, line, n);
		const bool good = dp_stat_parse(cut, &stat);
		cr_expect_eq(good, n > (size_t)(strstr(line, " 99 ") - line) + 1, "%zu bytes", n);
	}
}

Test(worker, is_known_by_the_flags_that_this_kernel_means)
{
	const uint64_t worker = flags_in("iou-wrk-5154", 0x404050), poller = flags_in("iou-sqp-5154", 0x404050),
	               vhost = flags_in("vhost-5154", 0x404040), older = flags_in("iou-wrk-5154", 0x400050),
	               thread = flags_in("a) S (b", 0x400040);
	cr_expect(dp_flags_of_worker(worker, 6018));
	cr_expect(dp_flags_of_worker(poller, 6018));
	cr_expect(dp_flags_of_worker(vhost, 6004));
	cr_expect(dp_flags_of_worker(older, 5012));
	cr_expect(!dp_flags_of_worker(thread, 6018));
	cr_expect(!dp_flags_of_worker(older, 5004), "there the flag means a virtual processor's thread");
	cr_expect(!dp_flags_of_worker(flags_in("modprobe", 0x404000), 5010), "there the flag means a thread that loads modules");
}

/* ---- leaving them alone ------------------------------------------------------------------------------------------------- */

static int ring = -1, feed[BLOCKED];
static uint32_t *tail, *completed;
static struct io_uring_cqe *ends;

static void submit(uint32_t *array, struct io_uring_sqe *sqe, int in, int out)
{
	const uint32_t at = *tail % ENTRIES;
	sqe[at] = (struct io_uring_sqe){.opcode = IORING_OP_SPLICE,
	                                .flags = IOSQE_ASYNC,
	                                .fd = out,
	                                .len = 1,
	                                .off = UINT64_MAX,
	                                .splice_off_in = UINT64_MAX,
	                                .splice_fd_in = in};
	array[at] = at;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, ring, 1, 0, 0, NULL, 0) != 1)
		_exit(3);
}

/* Each request blocks a worker: its pipe is empty. */
static bool requests(void)
{
	struct io_uring_params p = {0};
	ring = (int)syscall(SYS_io_uring_setup, ENTRIES, &p);
	if (ring < 0)
		return false;
	char *sq = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
	char *cq = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_CQ_RING);
	struct io_uring_sqe *sqe = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
	tail = (void *)(sq + p.sq_off.tail);
	completed = (void *)(cq + p.cq_off.tail);
	ends = (void *)(cq + p.cq_off.cqes);
	for (int i = 0; i < BLOCKED; i++) {
		int in[2], out[2];
		if (pipe(in) || pipe(out))
			_exit(3);
		feed[i] = in[1];
		submit((void *)(sq + p.sq_off.array), sqe, in[0], out[1]);
	}
	return true;
}

/* Runs until it is told to look; then each request must move its byte, and none may have ended before. */
static void work(void)
{
	if (!requests())
		tr->value[0] = errno;
	tr->ready = 1;
	tr_await_value(&tr->value[1], 1);
	tr->value[2] = (long)*completed;
	for (int i = 0; i < BLOCKED; i++)
		if (write(feed[i], "x", 1) != 1)
			_exit(3);
	until(__atomic_load_n(completed, __ATOMIC_ACQUIRE) >= BLOCKED);
	for (int i = 0; i < BLOCKED; i++)
		tr->value[3] += ends[i].res != 1;
	tr->value[4] = 1;
	for (;;)
		pause();
}

static size_t blocked_workers(pid_t pid)
{
	struct dp_tids tids;
	struct dp_task_stat stat;
	size_t n = 0;
	cr_assert(dp_proc_tids(pid, &tids));
	for (size_t i = 0; i < tids.n; i++)
		n += dp_proc_stat(pid, tids.tid[i], &stat) && dp_task_is_worker(&stat) && stat.state == 'S';
	free(tids.tid);
	return n;
}

static pid_t spawn(void (*fn)(void))
{
	const pid_t pid = tr_spawn(fn);
	if (tr->value[0])
		cr_skip_test("io_uring is not available: %s", strerror((int)tr->value[0]));
	cr_assert(until(blocked_workers(pid) >= BLOCKED));
	return pid;
}

static void no_request_has_failed(pid_t pid)
{
	tr->value[1] = 1;
	cr_assert(tr_await_value(&tr->value[4], 1));
	cr_expect_eq(tr->value[2], 0, "%ld requests ended before their pipe had a byte", tr->value[2]);
	cr_expect_eq(tr->value[3], 0, "%ld requests failed", tr->value[3]);
	tr_kill(pid);
}

static void work_with_a_thread(void)
{
	pthread_t t;
	pthread_create(&t, NULL, tr_idle_thread, NULL);
	work();
}

Test(worker, stands_in_no_freeze, .timeout = 100)
{
	const pid_t pid = spawn(work_with_a_thread);
	const struct dp_process p = tr_process(pid);
	for (int i = 0; i < 50; i++) {
		struct dp_freeze f;
		tr_ok(dp_freeze_all(&p, TR_LIMIT, &f));
		cr_expect_eq(f.n, 2, "%zu threads of two are held", f.n);
		dp_thaw_all(&f);
	}
	no_request_has_failed(pid);
}

static bool count(struct dp_freeze *one, void *data)
{
	size_t *n = data;
	cr_expect(!dp_proc_is_worker(one->thread[0].tid, one->thread[0].tid));
	++*n;
	return true;
}

Test(worker, is_met_by_no_round_and_a_round_is_whole, .timeout = 100)
{
	const pid_t pid = spawn(work_with_a_thread);
	struct dp_target t = {.process = tr_process(pid)};
	struct dp_for_each_stopped each = {0};
	size_t n = 0;
	bool all = false;
	for (int round = 0; round < 5 && !all; round++)
		tr_ok(dp_for_each_stopped_round(&t, &each, count, &n, &all));
	dp_for_each_stopped_fini(&each);
	cr_expect(all);
	cr_expect_eq(n, 2);
	no_request_has_failed(pid);
}

/* Its only thread is in a call that must not be borrowed, and the workers cannot take its place. */
static void wait_in_a_timed_call(void)
{
	uint64_t set = 1 << (SIGUSR2 - 1);
	sigset_t blocked;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR2);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	if (!requests())
		tr->value[0] = errno;
	tr->ready = 1;
	for (;;) /* when io_uring starts a worker, it ends the call itself */
		syscall(SYS_rt_sigtimedwait, &set, NULL, &(const struct timespec){1000, 0}, 8);
}

Test(worker, is_never_borrowed, .timeout = 100)
{
	struct dp_borrow *b;
	const pid_t pid = spawn(wait_in_a_timed_call);
	const struct dp_process p = tr_process(pid);
	cr_assert(tr_await(pid, 'S', SYS_rt_sigtimedwait));
	for (int i = 0; i < 5; i++)
		tr_tag(dp_borrow_begin(&p, NULL, TR_BRIEF, false, &b), DP_TAG_NO_THREAD);
	tr_kill(pid);
}

static void *ends_first(void *arg)
{
	work();
	return arg;
}

static void leave_to_a_thread(void)
{
	pthread_t t;
	pthread_create(&t, NULL, ends_first, NULL);
	syscall(SYS_exit, 0);
}

/* The first thread has ended, and the oldest remaining one may be a worker. */
Test(worker, is_not_what_a_process_is_looked_at_through, .timeout = 100)
{
	const pid_t pid = spawn(leave_to_a_thread);
	cr_assert(tr_await(pid, 'Z', -1));
	const struct dp_process p = tr_process(pid);
	cr_expect(p.leader_zombie);
	cr_expect(!dp_proc_is_worker(pid, p.alive));
	struct dp_freeze f;
	tr_ok(dp_freeze_all(&p, TR_LIMIT, &f));
	cr_expect_eq(f.n, 1);
	dp_thaw_all(&f);
	no_request_has_failed(pid);
}
