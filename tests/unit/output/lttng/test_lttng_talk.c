/* SPDX-License-Identifier: MIT */
/* A request to LTTng that hangs, crashes or is interrupted: dynprobe has probes installed and must continue. */
#include "output/lttng/lttng_talk.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONG UINT64_C(60000000000)

struct data {
	int a, b;
	char big[200000]; /* more than a pipe's buffer */
};

static struct data data;

static struct dp_error *answer(void *arg)
{
	struct data *d = arg;
	d->b = d->a * 2;
	memset(d->big, 'x', sizeof(d->big));
	return NULL;
}

static struct dp_error *refuse(void *arg)
{
	((struct data *)arg)->b = 99;
	errno = ENOENT;
	return dp_error_sys(DP_TAG_LTTNG, "refused %d", ((struct data *)arg)->a);
}

static struct dp_error *hang(void *arg)
{
	(void)arg;
	while (pause())
		;
	return NULL;
}

static struct dp_error *crash(void *arg)
{
	(void)arg;
	raise(SIGKILL);
	return NULL;
}

static struct dp_error *leave(void *arg)
{
	(void)arg;
	_exit(0);
}

static void no_child_is_left(void)
{
	cr_expect_eq(waitpid(-1, NULL, WNOHANG), -1);
	cr_expect_eq(errno, ECHILD);
}

Test(talk, the_answer_comes_back)
{
	data.a = 21;
	cr_assert_null(dp_lttng_talk(answer, &data, sizeof(data), LONG));
	cr_expect_eq(data.b, 42);
	cr_expect_eq(data.big[sizeof(data.big) - 1], 'x');
	no_child_is_left();
}

Test(talk, a_refusal_changes_nothing)
{
	data.a = 7;
	struct dp_error *err = dp_lttng_talk(refuse, &data, sizeof(data), LONG);
	cr_assert_not_null(err);
	cr_expect_eq(err->tag, DP_TAG_LTTNG);
	cr_expect_eq(err->sys, ENOENT);
	cr_expect_not_null(strstr(err->message, "refused 7"));
	cr_expect_eq(data.b, 0);
	dp_error_destroy(err);
	no_child_is_left();
}

Test(talk, one_that_hangs_is_ended)
{
	struct dp_error *err = dp_lttng_talk(hang, &data, sizeof(data), 20000000);
	cr_assert_not_null(err);
	cr_expect_eq(err->tag, DP_TAG_LTTNG);
	cr_expect_not_null(strstr(err->message, "no answer"));
	dp_error_destroy(err);
	no_child_is_left();
}

Test(talk, one_that_dies_or_leaves_is_told)
{
	struct dp_error *err = dp_lttng_talk(crash, &data, sizeof(data), LONG);
	cr_assert_not_null(err);
	cr_expect_not_null(strstr(err->message, "died of Killed"));
	dp_error_destroy(err);
	err = dp_lttng_talk(leave, &data, sizeof(data), LONG);
	cr_assert_not_null(err);
	cr_expect_not_null(strstr(err->message, "without an answer"));
	dp_error_destroy(err);
	no_child_is_left();
}

static volatile sig_atomic_t alarms;

static void count(int sig)
{
	(void)sig;
	alarms = alarms + 1;
}

static struct dp_error *count_in_child(void *arg)
{
	struct data *d = arg;
	const int before = alarms;
	raise(SIGUSR1); /* as Ctrl-C reaches the whole process group */
	raise(SIGINT);
	d->a = alarms - before;
	return NULL;
}

Test(talk, the_tools_handlers_do_not_run_in_the_child)
{
	signal(SIGUSR1, count);
	signal(SIGINT, count);
	data.a = 1;
	cr_assert_null(dp_lttng_talk(count_in_child, &data, sizeof(data), LONG));
	cr_expect_eq(data.a, 0);
	raise(SIGUSR1);
	cr_expect_eq(alarms, 1, "the tool's own mask is as before");
}

static pthread_t talker;
static int go[2];

static struct dp_error *wait_for_go(void *arg)
{
	char c;
	((struct data *)arg)->a = read(go[0], &c, 1) == 1;
	return NULL;
}

static void *interrupt(void *arg)
{
	(void)arg;
	for (int i = 0; i < 20; i++) {
		pthread_kill(talker, SIGUSR1);
		usleep(1000);
	}
	cr_assert_eq(write(go[1], "g", 1), 1);
	return NULL;
}

Test(talk, signals_to_the_tool_do_not_end_it)
{
	struct sigaction sa = {.sa_handler = count}; /* without SA_RESTART */
	pthread_t thread;
	sigaction(SIGUSR1, &sa, NULL);
	cr_assert_eq(pipe(go), 0);
	talker = pthread_self();
	cr_assert_eq(pthread_create(&thread, NULL, interrupt, NULL), 0);
	cr_assert_null(dp_lttng_talk(wait_for_go, &data, sizeof(data), LONG));
	cr_expect_eq(data.a, 1);
	pthread_join(thread, NULL);
	cr_expect_gt(alarms, 0);
}

/* A tool whose parent made it ignore SIGCHLD cannot reap children, and still gets the answer. */
Test(talk, children_that_are_reaped_by_the_kernel)
{
	signal(SIGCHLD, SIG_IGN);
	data.a = 4;
	cr_assert_null(dp_lttng_talk(answer, &data, sizeof(data), LONG));
	cr_expect_eq(data.b, 8);
}

static struct dp_error *complain(void *arg)
{
	fprintf(stderr, "error one\nerror two\n");
	dp_lttng_said(arg, 64);
	return NULL;
}

Test(talk, what_the_library_prints_is_caught)
{
	char said[64] = "";
	cr_assert_null(dp_lttng_talk(complain, said, sizeof(said), LONG));
	cr_expect_str_eq(said, "error one;error two");
}
