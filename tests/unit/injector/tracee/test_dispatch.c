/* SPDX-License-Identifier: MIT */
/*
 * Threads whose system calls go to a handler of the program (Syscall User Dispatch), and threads that must not read the time
 * stamp counter: dynprobe borrows none of them where that would kill the program.
 */
#include "helper_tracee.h"

#include "injector/target/target.h"
#include "injector/tracee/borrow/borrow.h"
#include "injector/tracee/borrow/dispatch.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif
#define GET_CONFIG 0x4211

static bool blind; /* behave like a kernel before 6.4 */
static int seized;

/* Replaces the C library's. */
long ptrace(enum __ptrace_request request, ...)
{
	va_list args;
	long word = 0;
	va_start(args, request);
	const pid_t tid = va_arg(args, pid_t);
	void *const addr = va_arg(args, void *), *data = va_arg(args, void *);
	va_end(args);
	const bool peeks = request == PTRACE_PEEKTEXT || request == PTRACE_PEEKDATA || request == PTRACE_PEEKUSER;
	seized += request == PTRACE_SEIZE;
	if (blind && (int)request == GET_CONFIG) {
		errno = EIO;
		return -1;
	}
	const long rc = syscall(SYS_ptrace, request, tid, addr, peeks ? &word : data);
	return rc || !peeks ? rc : word;
}

/* ---- programs ----------------------------------------------------------------------------------------------------------- */

static volatile char given;
static unsigned long from, size;

static void on_sys(int sig, siginfo_t *info, void *context)
{
	given = 0;
	tr->handled++;
	tr->value[1] = info->si_syscall;
	(void)sig;
	(void)context;
}

static void dispatch(bool now)
{
	struct sigaction action = {.sa_sigaction = on_sys, .sa_flags = SA_SIGINFO | SA_NODEFER};
	sigaction(SIGSYS, &action, NULL);
	if (prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, from, size, &given))
		tr->value[0] = errno;
	given = now;
}

/* Runs until told to make a call, which its handler gets. */
static void spin(void)
{
	while (!tr->value[2])
		tr->calls++;
	given = 1;
	long ret;
	__asm__ volatile("syscall" : "=a"(ret) : "a"(0x7777L) : "rcx", "r11", "memory");
	given = 0;
	tr->value[3] = 1;
	for (;;)
		pause();
}

static void gives_all(void)
{
	dispatch(false);
	tr->ready = 1;
	given = !tr->value[0];
	spin();
}

static void gives_none_now(void)
{
	dispatch(false);
	tr->ready = 1;
	spin();
}

static void gives_in_one_thread(void)
{
	pthread_t t;
	pthread_create(&t, NULL, tr_idle_thread, NULL);
	gives_all();
}

static void handles_only(void)
{
	struct sigaction action = {.sa_sigaction = on_sys, .sa_flags = SA_SIGINFO};
	sigaction(SIGSYS, &action, NULL);
	tr->ready = 1;
	for (;;)
		pause();
}

static pid_t spawn(void (*fn)(void))
{
	const pid_t pid = tr_spawn(fn);
	if (tr->value[0])
		cr_skip_test("this kernel has no Syscall User Dispatch: %s", strerror((int)tr->value[0]));
	return pid;
}

/* Its handler is still installed, and only the program's own call reached it. */
static void is_unharmed(pid_t pid)
{
	const long calls = tr->calls;
	cr_assert(tr_await_value(&tr->calls, calls + 1), "the target hangs");
	cr_expect_eq(tr->handled, 0, "its handler got call %ld", tr->value[1]);
	tr->value[2] = 1;
	cr_assert(tr_await_value(&tr->value[3], 1), "its own call did not reach its handler");
	cr_expect_eq(tr->handled, 1);
	cr_expect_eq(tr->value[1], 0x7777);
	tr_kill(pid);
}

/* ---- which thread is borrowed ------------------------------------------------------------------------------------------- */

static unsigned long boot; /* where the boot code was */

static struct dp_error *borrow_frozen(const struct dp_process *p, pid_t *by)
{
	struct dp_freeze f;
	struct dp_borrow *b;
	tr_ok(dp_freeze_all(p, TR_LIMIT, &f));
	struct dp_error *err = dp_borrow_begin(p, &f, TR_LIMIT, false, &b);
	if (!err) {
		*by = dp_borrow_tid(b);
		boot = b->boot.v;
		int64_t got = 0;
		err = dp_remote_syscall(b, SYS_getpid, (const uint64_t[6]){0}, &got);
		cr_expect(err || got == p->ns_pid);
		dp_error_destroy(dp_borrow_end(b, NULL));
	}
	dp_thaw_all(&f);
	return err;
}

static struct dp_error *borrow_running(const struct dp_process *p, pid_t *by)
{
	struct dp_borrow *b;
	DP_TRY(dp_borrow_begin(p, NULL, TR_BRIEF, false, &b));
	*by = dp_borrow_tid(b);
	int64_t got = 0;
	struct dp_error *err = dp_remote_syscall(b, SYS_getpid, (const uint64_t[6]){0}, &got);
	cr_expect(err || got == p->ns_pid);
	dp_error_destroy(dp_borrow_end(b, NULL));
	return err;
}

Test(dispatch, a_thread_whose_calls_are_all_given_away_is_refused, .timeout = 100)
{
	pid_t by;
	const pid_t pid = spawn(gives_all);
	const struct dp_process p = tr_process(pid);
	tr_tag(borrow_frozen(&p, &by), DP_TAG_DISPATCH);
	tr_tag(borrow_running(&p, &by), DP_TAG_NO_THREAD);
	is_unharmed(pid);
}

Test(dispatch, one_whose_switch_is_open_serves_while_nobody_can_close_it, .timeout = 100)
{
	pid_t by = 0;
	const pid_t pid = spawn(gives_none_now);
	const struct dp_process p = tr_process(pid);
	tr_ok(borrow_frozen(&p, &by));
	cr_expect_eq(by, pid);
	tr_tag(borrow_running(&p, &by), DP_TAG_NO_THREAD);
	is_unharmed(pid);
}

/* Libraries are above this address, the program itself below. */
#define LIBRARIES     0x7e0000000000
#define LIBRARIES_END 0x800000000000

Test(dispatch, from_the_range_whose_calls_are_made_it_serves, .timeout = 100)
{
	pid_t by = 0;
	from = LIBRARIES;
	size = LIBRARIES_END - LIBRARIES;
	cr_assert_lt((unsigned long)(uintptr_t)spin, from);
	const pid_t pid = spawn(gives_all);
	const struct dp_process p = tr_process(pid);
	tr_ok(borrow_frozen(&p, &by));
	cr_expect_eq(by, pid);
	cr_expect_geq(boot, from, "its code is at %#lx", boot);
	is_unharmed(pid);
}

/* The page of libc with syscall(): not its last page. */
Test(dispatch, a_range_without_room_is_refused, .timeout = 100)
{
	pid_t by;
	from = (unsigned long)(uintptr_t)syscall & ~0xfffUL;
	size = 4096;
	const pid_t pid = spawn(gives_all);
	const struct dp_process p = tr_process(pid);
	tr_tag(borrow_frozen(&p, &by), DP_TAG_DISPATCH);
	is_unharmed(pid);
}

Test(dispatch, another_thread_serves, .timeout = 100)
{
	pid_t by = 0;
	const pid_t pid = spawn(gives_in_one_thread);
	const struct dp_process p = tr_process(pid);
	tr_ok(borrow_frozen(&p, &by));
	cr_expect_neq(by, pid);
	tr_ok(borrow_running(&p, &by));
	cr_expect_neq(by, pid);
	is_unharmed(pid);
}

/* The first call shows the dispatch, and is undone; the handler stays installed. */
Test(dispatch, where_the_kernel_does_not_say_a_call_is_taken_back, .timeout = 100)
{
	pid_t by;
	const pid_t pid = spawn(gives_all);
	const struct dp_process p = tr_process(pid);
	blind = true;
	tr_tag(borrow_frozen(&p, &by), DP_TAG_DISPATCH);
	tr_tag(borrow_running(&p, &by), DP_TAG_DISPATCH);
	blind = false;
	is_unharmed(pid);
}

/* ---- before a probe is installed ---------------------------------------------------------------------------------------- */

static struct dp_error *check(pid_t pid)
{
	struct dp_target t = {.process = tr_process(pid)};
	seized = 0;
	return dp_dispatch_check(&t);
}

Test(dispatch, any_thread_that_does_it_is_found, .timeout = 100)
{
	const pid_t pid = spawn(gives_in_one_thread);
	tr_tag(check(pid), DP_TAG_DISPATCH);
	is_unharmed(pid);
}

Test(dispatch, is_not_what_a_handler_alone_means, .timeout = 100)
{
	const pid_t pid = spawn(handles_only);
	tr_ok(check(pid));
	cr_expect_eq(seized, 1);
	tr_kill(pid);
}

Test(dispatch, nobody_is_stopped_for_it_where_nobody_handles_it, .timeout = 100)
{
	const pid_t pid = spawn(tr_idle);
	tr_ok(check(pid));
	cr_expect_eq(seized, 0);
	tr_kill(pid);
}
