/* SPDX-License-Identifier: MIT */
/*
 * A signal that a process ignores wakes no thread, unless its receiver is traced: then another thread gets it while the receiver
 * is stopped. The call in which that thread waits is interrupted, although the signal is ignored (eintr.c).
 */
#include "helper_tracee.h"

#include "injector/tracee/proc/proc.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONG_S  100
#define WAITERS 4
#define ROUNDS  700

enum { NAMED, FIRST }; /* tr->value: how many threads have stored their ids, and these */

static void say_id(void)
{
	static _Atomic long n;
	tr->value[FIRST + n++] = gettid();
	__atomic_add_fetch(&tr->value[NAMED], 1, __ATOMIC_RELEASE);
}

/* In a call that a stop interrupts. */
static void *waiter(void *arg)
{
	int pair[2];
	char c;
	const struct timeval tv = {LONG_S, 0};
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)))
		return arg;
	say_id();
	for (;;) {
		const ssize_t n = recv(pair[0], &c, 1, 0);
		__atomic_add_fetch(n < 0 && errno == EINTR ? &tr->eintr : &tr->failed, 1, __ATOMIC_RELAXED);
	}
}

/* In a call that the kernel restarts. */
static void *sleeper(void *arg)
{
	say_id();
	for (;;)
		pause();
	return arg;
}

static void start_threads(void)
{
	pthread_t t;
	for (int i = 0; i < WAITERS; i++)
		pthread_create(&t, NULL, waiter, NULL);
	tr_await_value(&tr->value[NAMED], WAITERS);
	pthread_create(&t, NULL, sleeper, NULL);
	tr_await_value(&tr->value[NAMED], WAITERS + 1);
}

static void *forks(void *arg)
{
	for (;;) {
		const pid_t pid = fork();
		if (pid == 0)
			_exit(0);
		waitpid(pid, NULL, 0);
		tr->calls++;
		tr->ready = 1;
	}
	return arg;
}

static void a_thread_has_children(void)
{
	pthread_t t;
	start_threads();
	pthread_create(&t, NULL, forks, NULL);
	for (;;)
		pause();
}

static void main_has_children(void)
{
	start_threads();
	forks(NULL);
}

static void main_sleeps(void)
{
	start_threads();
	tr->ready = 1;
	for (;;)
		pause();
}

/* A thread that is still on its way could take the signal for which another one was woken. */
static void await_blocked(pid_t pid)
{
	for (int i = 0; i <= WAITERS; i++) {
		long nr;
		uint64_t args[6];
		cr_assert(until(dp_proc_syscall(pid, (pid_t)tr->value[FIRST + i], &nr, args) && nr >= 0));
	}
}

static void hold_often(pid_t pid)
{
	struct dp_process p = tr_process(pid);
	for (int i = 0; i < ROUNDS; i++) {
		struct dp_freeze f;
		await_blocked(pid);
		tr_ok(dp_freeze_all(&p, TR_LIMIT, &f));
		dp_thaw_all(&f);
	}
	cr_expect_eq(tr->failed, 0);
	cr_expect_eq(tr->eintr, 0, "%ld calls interrupted", tr->eintr);
	tr_kill(pid);
}

/* dynprobe chooses the thread that gets no signals, unless it is not seen waiting at that moment. */
static void borrow_often(pid_t pid, bool send)
{
	int nbest = 0;
	struct dp_process p = tr_process(pid);
	for (int i = 0; i < ROUNDS; i++) {
		struct dp_borrow *b;
		await_blocked(pid);
		tr_ok(dp_borrow_begin(&p, NULL, TR_LIMIT, false, &b));
		const bool best = dp_borrow_tid(b) == tr->value[FIRST + WAITERS];
		nbest += best;
		if (send && best)
			kill(pid, SIGURG);
		tr_remote(b, SYS_getpid, 0, 0, 0, 0, 0, 0);
		tr_ok(dp_borrow_end(b, NULL));
	}
	cr_expect_gt(nbest, ROUNDS * 9 / 10, "%d of %d", nbest, ROUNDS);
	cr_expect_eq(tr->failed, 0);
	cr_expect_eq(tr->eintr, 0, "%ld calls interrupted", tr->eintr);
	tr_kill(pid);
}

Test(ignored_signals, a_threads_children_end_while_all_are_held)
{
	hold_often(tr_spawn(a_thread_has_children));
}

Test(ignored_signals, the_first_threads_children_end_while_all_are_held)
{
	hold_often(tr_spawn(main_has_children));
}

Test(ignored_signals, a_threads_children_end_while_one_is_borrowed)
{
	borrow_often(tr_spawn(a_thread_has_children), false);
}

Test(ignored_signals, sent_while_one_is_borrowed)
{
	borrow_often(tr_spawn(main_sleeps), true);
}
