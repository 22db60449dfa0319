/* SPDX-License-Identifier: MIT */
/*
 * G1: the tool is killed at any instant of freezing and borrowing, and the target continues with correct results. One target
 * survives several deaths: what a dead tool leaves must not disturb the next one either.
 */
#include "helper_tracee.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEATHS_PER_TARGET 6
#define TARGETS           25

static void count(long rc)
{
	if (rc < 0) {
		tr->failed++;
		tr->failed_errno = errno;
	}
	tr->calls++;
}

/* Checks every kind of result: arguments, return values, sums over registers and memory. */
static void computing(void)
{
	tr->ready = 1;
	for (;;) {
		volatile unsigned long sum = 0;
		double d = 0;
		for (unsigned long i = 1; i <= 20000; i++) {
			sum += i * i;
			d += (double)i;
		}
		count(sum == 2666866670000ul && d == 200010000.0 ? 0 : -1);
	}
}

static void calling(void)
{
	long pid = getpid();
	tr->ready = 1;
	for (;;)
		count(syscall(SYS_getpid) == pid ? 0 : -1);
}

static void sleeping(void)
{
	tr->ready = 1;
	for (;;)
		count(nanosleep(&(struct timespec){0, 2000000}, NULL));
}

static void piping(void)
{
	int fds[2];
	if (pipe(fds) != 0)
		_exit(1);
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* otherwise it could fill the pipe and wait forever */
		for (char c = 0; write(fds[1], &c, 1) == 1; c++)
			tr_sleep_us(300);
	}
	tr->ready = 1;
	for (char want = 0, got;; want++)
		count(read(fds[0], &got, 1) == 1 && got == want ? 0 : -1);
}

static void polling(void)
{
	int e = epoll_create1(0), fds[2];
	struct epoll_event ev = {.events = EPOLLIN};
	if (pipe(fds) != 0 || epoll_ctl(e, EPOLL_CTL_ADD, fds[0], &ev) != 0)
		_exit(1);
	tr->ready = 1;
	for (;;) {
		long rc = epoll_wait(e, &ev, 1, 1);
		if (rc < 0 && errno == EINTR) { /* a tool that dies between a stop and its repair may leave this one trace */
			tr->eintr++;
			rc = 0;
		}
		count(rc);
	}
}

static void *as_thread(void *fn)
{
	((void (*)(void))fn)();
	return NULL;
}

static void threaded(void)
{
	void (*const kind[])(void) = {computing, calling, sleeping};
	for (int i = 0; i < 6; i++) {
		pthread_t t;
		pthread_create(&t, NULL, as_thread, (void *)kind[i % 3]);
	}
	polling();
}

/* The memory of scripts. Each death has its own, because what a dead tool leaves is not reused. */
static uint8_t room[TARGETS * DEATHS_PER_TARGET][DP_SCRIPT_ROOM];
static size_t nth;

static struct dp_error *run_script(struct dp_borrow *b, pid_t pid)
{
	struct dp_step step[40];
	size_t done;
	for (size_t i = 0; i < 40; i++)
		step[i] = (struct dp_step){.nr = i % 3 ? SYS_getpid : SYS_sched_yield, .want = i % 3 ? pid : 0};
	return dp_remote_script(b, (uint64_t)(uintptr_t)room[nth], step, 40, dp_now_ns() + 200000, &done);
}

static void tool(pid_t pid)
{
	struct dp_process p;
	if (dp_process_check(pid, false, &p))
		_exit(3);
	for (;;) {
		struct dp_freeze f;
		struct dp_borrow *b;
		const uint64_t none[6] = {0};
		int64_t result;
		struct dp_error *err = dp_freeze_all(&p, TR_LIMIT, &f);
		if (!err) {
			err = dp_borrow_begin(&p, &f, TR_LIMIT, false, &b);
			if (!err) {
				dp_error_destroy(dp_remote_syscall(b, SYS_getppid, none, &result));
				dp_error_destroy(run_script(b, pid));
				dp_error_destroy(dp_borrow_end(b, NULL));
			}
			dp_thaw_all(&f);
		}
		dp_error_destroy(err);
		err = dp_borrow_begin(&p, NULL, TR_LIMIT, false, &b);
		const bool lent = !err;
		for (int i = 0; !err && i < 3; i++)
			err = dp_remote_syscall(b, SYS_sched_yield, none, &result);
		for (int i = 0; !err && i < 3; i++)
			err = run_script(b, pid);
		if (lent)
			dp_error_destroy(dp_borrow_end(b, NULL));
		dp_error_destroy(err);
	}
}

static void kill_tool_at(pid_t target, long us)
{
	pid_t pid = fork();
	if (pid == 0) {
		tool(target);
		_exit(0);
	}
	tr_sleep_us(us);
	kill(pid, SIGKILL);
	int status;
	waitpid(pid, &status, 0);
	cr_assert(WIFSIGNALED(status), "the tool ended by itself: %x", status);
}

static void deaths(void (*fn)(void))
{
	srand48(7);
	nth = 0;
	for (int i = 0; i < TARGETS; i++) {
		pid_t pid = tr_spawn(fn);
		tr->eintr = 0;
		for (int k = 0; k < DEATHS_PER_TARGET; k++) {
			kill_tool_at(pid, 300 + lrand48() % 2500);
			nth++;
			int status;
			cr_assert_eq(waitpid(pid, &status, WNOHANG), 0, "the target died: status %x, death %d", status, k);
			long before = tr->calls;
			cr_assert(tr_await_value(&tr->calls, before + 2), "the target hangs: state %c", tr_state(pid));
			cr_assert_eq(tr->failed, 0, "wrong result, errno %ld", tr->failed_errno);
			cr_assert(tr->eintr <= k + 1, "more interruptions than deaths");
		}
		tr_kill(pid);
	}
}

#define DEATHS(name)                                                                                                             \
	Test(tool_death, name)                                                                                                   \
	{                                                                                                                        \
		deaths(name);                                                                                                    \
	}

DEATHS(computing)
DEATHS(calling)
DEATHS(sleeping)
DEATHS(piping)
DEATHS(polling)
DEATHS(threaded)

/* A tool that dies with a thread borrowed, in a target that is stopped at the same moment: the thread stays in the boot code. */
static void die_with_a_thread(pid_t target)
{
	pid_t pid = fork();
	if (pid == 0) {
		struct dp_process p;
		struct dp_borrow *b;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (dp_process_check(target, false, &p) || dp_borrow_begin(&p, NULL, TR_LIMIT, false, &b))
			_exit(3);
		kill(target, SIGSTOP);
		raise(SIGKILL);
	}
	int status;
	waitpid(pid, &status, 0);
	cr_assert(WIFSIGNALED(status), "the tool ended by itself: %x", status);
	cr_assert(tr_await(target, 'T', -1));
}

/* Its way back leads through the dead tool's code, which would count as free while the thread is in the second tool's. */
Test(tool_death, thread_still_in_a_dead_tools_code_is_not_borrowed_again)
{
	struct dp_freeze f;
	struct dp_borrow *b;
	pid_t pid = tr_spawn(computing);
	die_with_a_thread(pid);
	struct dp_process p = tr_process(pid);
	tr_ok(dp_freeze_all(&p, TR_LIMIT, &f));
	tr_tag(dp_borrow_begin(&p, &f, TR_LIMIT, false, &b), DP_TAG_NO_THREAD);
	dp_thaw_all(&f);
	tr_tag(dp_borrow_begin(&p, NULL, TR_BRIEF, false, &b), DP_TAG_NO_THREAD);
	kill(pid, SIGCONT);
	long before = tr->calls;
	cr_assert(tr_await_value(&tr->calls, before + 2), "the target hangs: state %c", tr_state(pid));
	tr_ok(dp_freeze_all(&p, TR_LIMIT, &f));
	tr_ok(dp_borrow_begin(&p, &f, TR_LIMIT, false, &b));
	tr_ok(dp_borrow_end(b, NULL));
	dp_thaw_all(&f);
	before = tr->calls;
	cr_assert(tr_await_value(&tr->calls, before + 2), "the target hangs: state %c", tr_state(pid));
	cr_assert_eq(tr->failed, 0);
	tr_kill(pid);
}
