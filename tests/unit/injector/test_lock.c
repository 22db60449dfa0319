/* SPDX-License-Identifier: MIT */
/* Two tools exclude each other from the start, also in a process whose first thread has ended, or ends between them. */
#include "helper_tracee.h"

#include "injector/injector.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *wait_thread(void *arg)
{
	tr->ready = 1;
	for (;;)
		pause();
	return arg;
}

/* Its first thread ends when told to. */
static void lose_the_leader(void)
{
	pthread_t t;
	pthread_create(&t, NULL, wait_thread, NULL);
	tr_await_value(&tr->value[0], 1);
	syscall(SYS_exit, 0);
}

static void end_leader(pid_t pid)
{
	tr->value[0] = 1;
	cr_assert(tr_await(pid, 'Z', -1));
}

static struct dp_error *open_target(pid_t pid, struct dp_target **ret)
{
	const struct dp_target_options options = {0};
	*ret = NULL;
	return dp_target_open(pid, &options, ret);
}

static void is_locked(pid_t pid)
{
	struct dp_target *t;
	char holder[32];
	struct dp_error *err = open_target(pid, &t);
	cr_assert_not_null(err, "a second tool was not refused");
	snprintf(holder, sizeof(holder), "(%d)", (int)getpid());
	cr_expect(strstr(err->message, holder), "%s", err->message);
	tr_tag(err, DP_TAG_LOCKED);
}

static void is_free(pid_t pid)
{
	struct dp_target *t;
	tr_ok(open_target(pid, &t));
	dp_target_close(t);
}

static void with_two(bool before, bool between)
{
	struct dp_target *t;
	const pid_t pid = tr_spawn(lose_the_leader);
	if (before)
		end_leader(pid);
	tr_ok(open_target(pid, &t));
	if (between)
		end_leader(pid);
	is_locked(pid);
	dp_target_close(t);
	is_free(pid);
	tr_kill(pid);
}

Test(lock, holds_for_a_process)
{
	with_two(false, false);
}

Test(lock, holds_where_the_first_thread_has_ended)
{
	with_two(true, false);
}

Test(lock, holds_where_the_first_thread_ends_between)
{
	with_two(false, true);
}
