/* SPDX-License-Identifier: MIT */
/* The timer of the guard: fast only while a late call waits for other code. */
#include "pmodules/host/host_state.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <time.h>

TestSuite(guard, .timeout = 60);

static volatile long period;

/* In front of libc's: keeps the period. */
int timer_settime(timer_t id, int flags, const struct itimerspec *to, struct itimerspec *old)
{
	period = to->it_interval.tv_nsec;
	int (*settime)(timer_t, int, const struct itimerspec *, struct itimerspec *);
	*(void **)&settime = dlsym(RTLD_NEXT, "timer_settime");
	return settime(id, flags, to, old);
}

static long slow;

static void until_fast(void *data)
{
	(void)data;
	slow = period;
	while (period >= slow)
		;
}

/* All of this code is foreign to the "module", which is over its time at once. */
Test(guard, a_late_call_that_returns_leaves_the_timer_as_it_was)
{
	const struct dp_guard_text nothing = {.runs_rarely = true};
	struct dp_host h = {.options = {.budget_ns = UINT64_C(1000000000)}};
	struct pmodule m = {.host = &h, .deadline_ns = dp_host_now()};
	cr_assert_null(dp_guard_run(&m, &nothing, until_fast, NULL));
	cr_assert_eq(period, slow);
	cr_assert_null(dp_guard_run(&m, &nothing, until_fast, NULL), "the next call begins slowly");
	dp_guard_off();
}
