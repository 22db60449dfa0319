/* SPDX-License-Identifier: MIT */
/* A tool that hangs while it holds threads: they resume without its help. */
#include "helper_tracee.h"

#include "injector/tracee/stop/freeze.h"
#include "injector/tracee/stop/watchdog.h"

#include <criterion/criterion.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS       UINT64_C(1000000)
#define FINISHED 7

static void work(void)
{
	tr->ready = 1;
	for (;;) {
		tr->calls++;
		tr_sleep_us(200);
	}
}

static void stop_twice(void)
{
	raise(SIGSTOP);
	raise(SIGSTOP);
}

static void look_at_it_all_the_time(void)
{
	for (const uint64_t until = dp_now_ns() + 2300 * MS; dp_now_ns() < until; tr_sleep_us(1000))
		dp_watchdog_alive();
}

static void stand(void)
{
	for (;;)
		pause();
}

static void do_nothing(void)
{
}

static struct {
	uint64_t limit, grace;
	void (*held)(void), (*behind)(void);
} plan;

/* Runs a separate tool that holds the target for as long as `held` takes. */
static pid_t run_tool(pid_t target)
{
	const struct dp_process p = tr_process(target);
	tr->value[0] = 0;
	const pid_t tool = fork();
	if (tool)
		return tool;
	struct dp_freeze f;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dp_freeze_all(&p, TR_LIMIT, &f))
		_exit(1);
	dp_watchdog_limit(plan.limit, plan.grace);
	tr->value[0] = 1;
	plan.held();
	dp_thaw_all(&f);
	plan.behind();
	_exit(FINISHED);
}

static int status_of(pid_t tool)
{
	int status = 0;
	do
		cr_assert_eq(waitpid(tool, &status, 0), tool);
	while (WIFSTOPPED(status));
	return status;
}

static void expect_target_goes_on(void)
{
	cr_expect(tr_await_value(&tr->calls, tr->calls + 3));
}

Test(watchdog, a_tool_that_is_stopped_in_a_hold_is_continued, .timeout = 60)
{
	const pid_t pid = tr_spawn(work);
	plan.limit = 20 * MS;
	plan.grace = 1000000 * MS;
	plan.held = stop_twice;
	plan.behind = do_nothing;
	const int status = status_of(run_tool(pid));
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == FINISHED, "%x", status);
	expect_target_goes_on();
	tr_kill(pid);
}

Test(watchdog, a_tool_that_a_debugger_stops_in_a_hold_is_ended, .timeout = 60)
{
	const pid_t pid = tr_spawn(work);
	plan.limit = 20 * MS;
	plan.grace = 300 * MS;
	plan.held = stand;
	plan.behind = do_nothing;
	const pid_t tool = run_tool(pid);
	cr_assert(tr_await_value(&tr->value[0], 1));
	ptrace(PTRACE_SEIZE, tool, NULL, NULL);
	ptrace(PTRACE_INTERRUPT, tool, NULL, NULL);
	const int status = status_of(tool);
	cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "%x", status);
	expect_target_goes_on();
	tr_kill(pid);
}

static void note_last_word(const char *held)
{
	tr->value[1] = !strcmp(held, "all threads of the program");
}

/* The tool is not stopped, but waits for something that does not come. */
Test(watchdog, a_tool_that_is_stuck_in_a_hold_says_so_before_it_is_ended, .timeout = 60)
{
	const pid_t pid = tr_spawn(work);
	plan.limit = 500 * MS;
	plan.grace = 1500 * MS;
	plan.held = stand;
	plan.behind = do_nothing;
	tr->value[1] = 0;
	dp_watchdog_last_word = note_last_word;
	const int status = status_of(run_tool(pid));
	cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "%x", status);
	cr_expect_eq(tr->value[1], 1);
	expect_target_goes_on();
	tr_kill(pid);
}

static void rest(void)
{
	tr_sleep_us(2500000);
}

Test(watchdog, a_hold_that_is_over_is_over, .timeout = 60)
{
	const pid_t pid = tr_spawn(work);
	plan.limit = 20 * MS;
	plan.grace = 2000 * MS; /* long: the tool may lose its processor */
	plan.held = do_nothing;
	plan.behind = rest;
	const int status = status_of(run_tool(pid));
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == FINISHED, "%x", status);
	tr_kill(pid);
}

Test(watchdog, a_tool_that_is_at_work_is_left_to_it, .timeout = 60)
{
	const pid_t pid = tr_spawn(work);
	plan.limit = 500 * MS;
	plan.grace = 1500 * MS;
	plan.held = look_at_it_all_the_time;
	plan.behind = do_nothing;
	const int status = status_of(run_tool(pid));
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == FINISHED, "%x", status);
	tr_kill(pid);
}

/* A single borrowed thread is covered as well, and the end of an inner hold does not end the outer one. */
Test(watchdog, a_tool_that_is_stopped_with_one_borrowed_thread_is_continued, .timeout = 60)
{
	const pid_t pid = tr_spawn(work);
	const struct dp_process p = tr_process(pid);
	const pid_t tool = fork();
	if (!tool) {
		struct dp_borrow *b = NULL;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (dp_borrow_begin(&p, NULL, TR_LIMIT, false, &b))
			_exit(1);
		dp_watchdog_limit(20 * MS, 1000000 * MS);
		dp_watchdog_start("a thread");
		dp_watchdog_stop();
		raise(SIGSTOP);
		_exit(dp_borrow_end(b, NULL) ? 1 : FINISHED);
	}
	const int status = status_of(tool);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == FINISHED, "%x", status);
	expect_target_goes_on();
	tr_kill(pid);
}

/* The thread was asked to stop and did not in time; it stops while the tool does not look. */
Test(watchdog, a_tool_that_is_stopped_with_a_thread_yet_to_stop_is_continued, .timeout = 60)
{
	const pid_t pid = tr_spawn(work);
	const struct dp_process p = tr_process(pid);
	const pid_t tool = fork();
	if (!tool) {
		bool gone;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dp_watchdog_start("a thread");
		if (dp_held_seize(&p, pid, &gone) || gone)
			_exit(1);
		ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
		dp_late_stop_add(pid, pid);
		dp_watchdog_limit(20 * MS, 5000 * MS);
		dp_watchdog_stop();
		raise(SIGSTOP);
		dp_late_stop_settle(TR_LIMIT);
		dp_watchdog_start("a thread");
		dp_watchdog_stop();
		_exit(FINISHED);
	}
	const int status = status_of(tool);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == FINISHED, "%x", status);
	expect_target_goes_on();
	tr_kill(pid);
}

/* The tool lives, but reads debug information for a minute, and does not look at threads that it has asked to stop. */
Test(watchdog, a_thread_that_stops_when_nobody_looks_goes_on, .timeout = 60)
{
	const pid_t pid = tr_spawn(work);
	const struct dp_process p = tr_process(pid);
	tr->value[0] = 0;
	const pid_t tool = fork();
	if (!tool) {
		bool gone;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (dp_held_seize(&p, pid, &gone) || gone)
			_exit(1);
		ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
		dp_late_stop_add(pid, pid);
		tr->value[0] = 1;
		stand();
	}
	cr_assert(tr_await_value(&tr->value[0], 1));
	tr_sleep_us(50000); /* it is stopped now, or was */
	expect_target_goes_on();
	kill(tool, SIGKILL);
	const int status = status_of(tool);
	cr_expect(WIFSIGNALED(status), "the tool lived all the time");
	tr_kill(pid);
}
