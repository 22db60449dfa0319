/* SPDX-License-Identifier: MIT */
/* A thread that holds the loader's lock and waits for the tool: the wait is bounded, whatever the tool does. */
#include "agent/loaded.h"
#include "tests/unit/agent/world.h"
#include "tests/unit/until.h"

#include <criterion/criterion.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct dp_debug_ctx *w;

static void begin(void)
{
	w = world_create(2, 16384, DP_ID_SELF);
	w->control->loads_served = 1;
}

static void end(void)
{
	world_destroy(w);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void *tell(void *unused)
{
	dp_loaded_tell(w->agent);
	return unused;
}

static void await_load(uint32_t n)
{
	cr_assert(until(DP_LOAD(&w->control->loads) == n));
}

static void wake(void)
{
	syscall(SYS_futex, &w->control->loads_done, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

Test(loaded, nobody_waits_where_no_tool_answers, .init = begin, .fini = end)
{
	w->control->loads_served = 0;
	dp_loaded_tell(w->agent); /* a wait of DP_LOADED_SECONDS would be counted in loads_late */
	dp_loaded_tell(w->agent);
	cr_expect_eq(w->control->loads, 2);
	cr_expect_eq(w->control->loads_late, 0);
}

Test(loaded, a_dead_tool_costs_one_wait_and_only_one, .init = begin, .fini = end)
{
	const double from = seconds();

	dp_loaded_tell(w->agent);
	cr_expect_geq(seconds() - from, DP_LOADED_SECONDS);
	cr_expect_eq(w->control->loads_late, 1);
	cr_expect_eq(w->control->loads_served, 0, "a later thread does not wait");
	dp_loaded_tell(w->agent);
	cr_expect_eq(w->control->loads_late, 1);
}

Test(loaded, an_answer_lets_go, .init = begin, .fini = end)
{
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, tell, NULL), 0);
	await_load(1);
	DP_STORE(&w->control->loads_done, 1);
	wake();
	pthread_join(thread, NULL);
	cr_expect_eq(w->control->loads_late, 0);
	cr_expect_eq(w->control->loads_served, 1);
}

Test(loaded, the_answer_to_an_earlier_load_is_none, .init = begin, .fini = end)
{
	w->control->loads = UINT32_MAX - 1; /* the counter may wrap */
	w->control->loads_done = UINT32_MAX - 1;
	dp_loaded_tell(w->agent);
	cr_expect_eq(w->control->loads_late, 1);
	w->control->loads_served = 1;
	w->control->loads_done = 1;
	dp_loaded_tell(w->agent);
	cr_expect_eq(w->control->loads, 0);
	cr_expect_eq(w->control->loads_late, 1);
}

Test(loaded, a_tool_that_leaves_lets_go, .init = begin, .fini = end)
{
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, tell, NULL), 0);
	await_load(1);
	DP_STORE(&w->control->loads_served, 0);
	wake();
	pthread_join(thread, NULL);
	cr_expect_eq(w->control->loads_late, 0);
}

static void nothing(int sig)
{
	(void)sig;
}

struct storm {
	pthread_t victim;
	uint32_t over;
};

static void *send_signals(void *arg)
{
	struct storm *storm = arg;

	while (!DP_LOAD(&storm->over)) {
		pthread_kill(storm->victim, SIGUSR1);
		usleep(2000);
	}
	return NULL;
}

/* If each signal restarted the interval, it would never end. */
Test(loaded, signals_do_not_make_the_wait_longer, .init = begin, .fini = end, .timeout = 60)
{
	struct sigaction action = {.sa_handler = nothing};
	struct storm storm = {.victim = pthread_self()};
	pthread_t thread;

	sigaction(SIGUSR1, &action, NULL);
	cr_assert_eq(pthread_create(&thread, NULL, send_signals, &storm), 0);
	dp_loaded_tell(w->agent);
	DP_STORE(&storm.over, 1);
	pthread_join(thread, NULL);
	cr_expect_eq(w->control->loads_late, 1);
}

Test(loaded, a_fork_child_is_not_its_parents_business, .init = begin, .fini = end)
{
	const pid_t child = fork();
	int status = 0;

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dp_loaded_tell(w->agent);
		dp_loaded_tell(NULL);
		_exit(0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0);
	cr_expect_eq(w->control->loads, 0);
	cr_expect_eq(w->control->loads_late, 0);
}
