/* SPDX-License-Identifier: MIT */
/*
 * Stopping threads again and again in short tries, instead of once for long: a thread that does not stop within 2 ms (starved of
 * a CPU, or waiting for its vfork child) must not keep the others waiting. While we hold threads we are the one the target waits
 * for, so we ask for a better place in the scheduler's queue first.
 */
#include "injector/target.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#define TRIES   120
#define REST_NS 10000000L

void dp_priority_raise(struct dp_priority *old)
{
	/* Ctrl-Z would stop us in the middle, and the target with us. */
	sigset_t stops;
	sigemptyset(&stops);
	sigaddset(&stops, SIGTSTP);
	sigaddset(&stops, SIGTTIN);
	sigaddset(&stops, SIGTTOU);
	sigprocmask(SIG_BLOCK, &stops, &old->mask);
	/* Short rests are to be short at the usual priority too. */
	prctl(PR_SET_TIMERSLACK, 1);
	/* Not inherited by a command that is started meanwhile. */
	const struct sched_param want = {.sched_priority = 1};
	old->policy = sched_getscheduler(0);
	old->raised = old->policy >= 0 && !sched_getparam(0, &old->param) &&
	              !sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &want);
}

void dp_priority_restore(const struct dp_priority *old)
{
	if (old->raised)
		sched_setscheduler(0, old->policy, &old->param);
	sigprocmask(SIG_SETMASK, &old->mask, NULL);
}

static bool worth_another_try(const struct dp_error *err, int tried)
{
	bool passing = err->tag == DP_TAG_UNSTOPPABLE || err->tag == DP_TAG_VFORK || err->tag == DP_TAG_NO_THREAD;
	return passing && tried + 1 < TRIES;
}

/* Later tries accept a longer hold, or a busy machine would never be probed. */
static uint64_t limit_of(int tried)
{
	const uint64_t times = tried < 20 ? 1 : tried < 40 ? 3 : tried < 80 ? 10 : 25;
	return times * DP_FREEZE_LIMIT_NS;
}

struct dp_error *dp_freeze_patiently(struct dp_target *t, struct dp_freeze *ret)
{
	for (int tried = 0;; tried++) {
		struct dp_error *err = dp_freeze_all(&t->process, limit_of(tried), ret);
		if (!err)
			t->process.alive = ret->thread[0].tid; /* the one that we looked through may have ended */
		if (!err || !worth_another_try(err, tried))
			return err;
		dp_error_destroy(err);
		/* Whoever was held in vain runs for as long, at least. */
		const long held = (long)limit_of(tried);
		nanosleep(&(struct timespec){.tv_nsec = held > REST_NS ? held : REST_NS}, NULL);
	}
}
