/* SPDX-License-Identifier: MIT */
/* A freeze of all threads: while they start and end, stopped by job control, under signals; their registers are unchanged. */
#include "helper_tracee.h"

#include "injector/target/target.h"
#include "injector/tracee/stop/exec_reaper.h"
#include "injector/tracee/stop/freeze.h"
#include "injector/tracee/stop/watchdog.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void *spin_thread(void *arg)
{
	for (;;)
		__atomic_add_fetch(&tr->calls, 1, __ATOMIC_RELAXED);
	return arg;
}

static void many(void)
{
	pthread_t t;
	for (int i = 0; i < 62; i++)
		pthread_create(&t, NULL, tr_idle_thread, NULL);
	pthread_create(&t, NULL, spin_thread, NULL);
	tr->ready = 1;
	for (;;)
		pause();
}

Test(freeze, sixty_four_threads_stand_and_go_on)
{
	pid_t pid = tr_spawn(many);
	struct dp_process p = tr_process(pid);
	struct dp_freeze f;
	for (int i = 0; i < 50; i++) {
		tr_ok(dp_freeze_all(&p, TR_LIMIT, &f));
		cr_assert_eq(f.n, 64);
		long calls = tr->calls;
		tr_sleep_us(500);
		cr_assert_eq(tr->calls, calls, "a thread runs");
		dp_thaw_all(&f);
		cr_assert(f.end_ns > f.begin_ns);
		cr_assert(tr_await_value(&tr->calls, calls + 1));
	}
	tr_kill(pid);
}

static void *short_thread(void *arg)
{
	__atomic_add_fetch(&tr->value[0], 1, __ATOMIC_RELAXED);
	return arg;
}

/* Threads that create threads that end at once. */
static void *maker(void *arg)
{
	for (;;) {
		pthread_t t[4];
		for (int i = 0; i < 4; i++)
			if (pthread_create(&t[i], NULL, short_thread, NULL))
				tr->failed++;
		for (int i = 0; i < 4; i++)
			pthread_join(t[i], NULL);
		__atomic_add_fetch(&tr->calls, 1, __ATOMIC_RELAXED);
	}
	return arg;
}

static void churn(void)
{
	pthread_t t;
	for (int i = 0; i < 3; i++)
		pthread_create(&t, NULL, maker, NULL);
	tr->ready = 1;
	maker(NULL);
}

Test(freeze, threads_born_and_dying_meanwhile)
{
	pid_t pid = tr_spawn(churn);
	struct dp_process p = tr_process(pid);
	struct dp_freeze f;
	for (int i = 0; i < 200; i++) {
		tr_ok(dp_freeze_all(&p, TR_LIMIT, &f));
		long calls = tr->calls, born = tr->value[0];
		tr_sleep_us(200);
		cr_assert(calls == tr->calls && born == tr->value[0], "a thread was missed");
		dp_thaw_all(&f);
		tr_sleep_us(100);
	}
	cr_assert(tr_await_value(&tr->calls, tr->calls + 10));
	cr_assert_eq(tr->failed, 0);
	tr_kill(pid);
}

static void on_signal(int sig)
{
	(void)sig;
	tr->handled++;
}

static void signalled(void)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_NODEFER};
	sigaction(SIGRTMIN, &sa, NULL);
	tr->ready = 1;
	for (;;)
		tr->calls++;
}

/* False: the thread got no processor in time to go to its handler, and the freeze is given up. */
static bool borrow_once(const struct dp_process *p, struct dp_freeze *f)
{
	struct dp_borrow *b;
	struct dp_error *err = dp_borrow_begin(p, f, TR_LIMIT, false, &b);
	if (err) {
		tr_tag(err, DP_TAG_NO_THREAD);
		return false;
	}
	cr_assert_eq(tr_remote(b, SYS_getpid, 0, 0, 0, 0, 0, 0), p->pid);
	tr_ok(dp_borrow_end(b, NULL));
	return true;
}

Test(freeze, every_signal_of_a_storm_arrives_once)
{
	pid_t pid = tr_spawn(signalled);
	struct dp_process p = tr_process(pid);
	long sent = 0, borrowed = 0;
	for (int i = 0; i < 300; i++) {
		struct dp_freeze f;
		for (int k = 0; k < 3; k++)
			sent += sigqueue(pid, SIGRTMIN, (union sigval){0}) == 0;
		tr_ok(dp_freeze_all(&p, TR_LIMIT, &f));
		sent += sigqueue(pid, SIGRTMIN, (union sigval){0}) == 0;
		if (i % 2) /* the restart may have to deliver the signal at which the thread stopped */
			borrowed += borrow_once(&p, &f);
		dp_thaw_all(&f);
	}
	cr_assert(tr_await_value(&tr->handled, sent), "%ld of %ld", tr->handled, sent);
	tr_sleep_us(3000);
	cr_assert_eq(tr->handled, sent);
	cr_assert_gt(borrowed, 75, "%ld of 150", borrowed);
	tr_kill(pid);
}

Test(freeze, job_stopped_target_stays_stopped)
{
	pid_t pid = tr_spawn(signalled);
	struct dp_process p = tr_process(pid);
	kill(pid, SIGSTOP);
	cr_assert(tr_await(pid, 'T', -1));
	for (int i = 0; i < 20; i++) {
		struct dp_freeze f;
		tr_ok(dp_freeze_all(&p, TR_LIMIT, &f));
		dp_thaw_all(&f);
		cr_assert(tr_await(pid, 'T', -1));
	}
	long calls = tr->calls;
	kill(pid, SIGCONT);
	cr_assert(tr_await_value(&tr->calls, calls + 1));
	tr_kill(pid);
}

Test(freeze, stop_signal_sent_while_held)
{
	pid_t pid = tr_spawn(signalled);
	struct dp_process p = tr_process(pid);
	struct dp_freeze f;
	tr_ok(dp_freeze_all(&p, TR_LIMIT, &f));
	kill(pid, SIGSTOP);
	dp_thaw_all(&f);
	cr_assert(tr_await(pid, 'T', -1));
	tr_kill(pid);
}

Test(freeze, killed_while_held)
{
	pid_t pid = tr_spawn(many);
	struct dp_process p = tr_process(pid);
	struct dp_freeze f;
	tr_ok(dp_freeze_all(&p, TR_LIMIT, &f));
	kill(pid, SIGKILL);
	dp_thaw_all(&f);
	int status;
	cr_assert_eq(waitpid(pid, &status, 0), pid); /* reaps it: no zombie of ours may remain */
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	tr_tag(dp_freeze_all(&p, TR_LIMIT, &f), DP_TAG_GONE);
}

static void *exec_when_told(void *unused)
{
	(void)unused;
	tr->ready = 1;
	while (!tr->value[0])
		;
	execl("/bin/sleep", "sleep", "100", NULL);
	_exit(errno);
}

static void execer(void)
{
	pthread_t t;
	for (int i = 0; i < 8; i++)
		pthread_create(&t, NULL, tr_idle_thread, NULL);
	exec_when_told(NULL);
}

/* The thread that executes a program gets its process's id. */
static void execer_thread(void)
{
	pthread_t t;
	for (int i = 0; i < 8; i++)
		pthread_create(&t, NULL, i == 4 ? exec_when_told : tr_idle_thread, NULL);
	tr_idle_thread(NULL);
}

static void expect_transient(struct dp_error *err)
{
	cr_expect(err->tag == DP_TAG_GONE || err->tag == DP_TAG_UNSTOPPABLE, "%s: %s", dp_tag_name(err->tag), err->message);
	dp_error_destroy(err);
}

Test(freeze, exec_at_any_moment_leaves_no_thread_held)
{
	for (int i = 0; i < 60; i++) {
		pid_t pid = tr_spawn(i % 2 ? execer_thread : execer);
		struct dp_process p = tr_process(pid);
		tr->value[0] = 1;
		for (int k = 0; k < 20; k++) {
			struct dp_freeze f;
			struct dp_error *err = dp_freeze_all(&p, TR_LIMIT, &f);
			if (err)
				expect_transient(err);
			else
				dp_thaw_all(&f);
		}
		dp_late_stop_settle(TR_LIMIT);
		cr_expect_not(dp_late_stop_is_left());
		cr_assert(tr_await(pid, 'S', SYS_clock_nanosleep), "state %c", tr_state(pid));
		tr->value[0] = 0;
		tr_kill(pid);
	}
}

Test(freeze, changed_registers_are_written_back)
{
	pid_t pid = tr_spawn(signalled);
	struct dp_process p = tr_process(pid);
	struct dp_freeze f;
	tr_ok(dp_freeze_all(&p, TR_LIMIT, &f));
	f.thread[0].regs.r15 = 0x1234;
	f.thread[0].regs_changed = true;
	dp_thaw_all(&f);
	tr_ok(dp_freeze_all(&p, TR_LIMIT, &f));
	cr_assert_eq(f.thread[0].regs.r15, 0x1234);
	dp_thaw_all(&f);
	tr_kill(pid);
}

/* A stop that another wait consumes is lost: the thread would stay stopped for as long as we live. */
Test(freeze, asking_whether_a_command_has_ended_takes_no_stop_away)
{
	pid_t pid = tr_spawn(tr_idle);
	struct dp_target t = {.process = tr_process(pid)};
	int status = 0;
	cr_assert_eq(ptrace(PTRACE_SEIZE, pid, NULL, (void *)(long)DP_SEIZE_OPTIONS), 0);
	ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
	cr_assert(tr_await(pid, 't', -1));
	cr_assert_not(dp_target_exit_status(&t, &status));
	cr_assert_eq(dp_stop_wait(pid, 0).kind, DP_STOP_TRAP);
	cr_assert_eq(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
	kill(pid, SIGTERM);
	cr_assert(tr_await(pid, 'Z', -1));
	cr_assert(dp_target_exit_status(&t, &status));
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM, "%x", status);
}

/* The reaper works while threads are seized, and these may stop at any moment, for example for a signal. */
Test(freeze, reaping_the_dead_takes_no_stop_away)
{
	pid_t pid = tr_spawn(tr_idle);
	struct dp_held h = {.tid = pid};
	cr_assert_eq(ptrace(PTRACE_SEIZE, pid, NULL, (void *)(long)DP_SEIZE_OPTIONS), 0);
	ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
	cr_assert(tr_await(pid, 't', -1));
	dp_exec_reaper_begin(0);
	dp_exec_reaper_watch(&h, 1);
	for (int i = 0; i < 20; i++)
		tr_sleep_us(5000); /* its timer interrupts these */
	dp_exec_reaper_end();
	cr_assert_eq(dp_stop_wait(pid, 0).kind, DP_STOP_TRAP);
	tr_kill(pid);
}

/* A thread that stops late is released, although nothing is frozen any more. */
Test(freeze, waiting_for_a_command_lets_go_what_stops_late)
{
	pid_t pid = tr_spawn(tr_idle);
	struct dp_target t = {.process = tr_process(pid)};
	int status = 0;
	dp_watchdog_is_off = true; /* its timer would handle the stop as well */
	cr_assert_eq(ptrace(PTRACE_SEIZE, pid, NULL, (void *)(long)DP_SEIZE_OPTIONS), 0);
	dp_late_stop_add(pid, pid);
	ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
	cr_assert(tr_await(pid, 't', -1));
	cr_assert_not(dp_target_exit_status(&t, &status));
	cr_assert(tr_await(pid, 'S', -1), "it is still stopped");
	tr_kill(pid);
}
