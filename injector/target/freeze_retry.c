/* SPDX-License-Identifier: MIT */
/*
 * Stops all threads in repeated short attempts instead of a long one: a thread that does not stop within 2 ms (starved of CPU, or
 * waiting for its vfork child) must not keep the others waiting. While threads are held, the target waits for us, so the
 * scheduling priority is raised first.
 */
#include "injector/target/target.h"

#include "injector/tracee/proc/proc.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#define TRIES      120
#define LAST_TRIES (TRIES + 20)
#define TRIES_MAX  400   /* with --max-pause: each one is short */
#define THREAD_NS  7000u /* to stop one of many on a calm machine */
#define CROWD      300u  /* least number of many, however short --max-pause is */
#define REST_NS   UINT64_C(10000000)
#define MOST_NS   UINT64_C(3000000000)
#define LEAST_NS  UINT64_C(200000) /* in less time not even a few threads can stop */
#define SECOND_NS UINT64_C(1000000000)
#define VFORK_NS  (10 * SECOND_NS) /* a thread waits for its vfork child; the others run */

void dp_priority_raise(struct dp_priority *old)
{
	/* Ctrl-Z would stop us in the middle, and the target too. */
	sigset_t stops;
	sigemptyset(&stops);
	sigaddset(&stops, SIGTSTP);
	sigaddset(&stops, SIGTTIN);
	sigaddset(&stops, SIGTTOU);
	sigprocmask(SIG_BLOCK, &stops, &old->mask);
	/* Makes short sleeps short at normal priority too. */
	prctl(PR_SET_TIMERSLACK, 1);
	/* SCHED_RESET_ON_FORK: a command that is started meanwhile does not inherit it. */
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

static bool is_passing(const struct dp_error *err)
{
	return err->tag == DP_TAG_UNSTOPPABLE || err->tag == DP_TAG_VFORK || err->tag == DP_TAG_NO_THREAD;
}

bool dp_target_is_crowded(const struct dp_target *t)
{
	struct dp_tids tids;
	const uint64_t most = t->patience.max_pause_ns;
	const bool is = most && dp_proc_tids(t->process.pid, &tids) && tids.n >= CROWD && tids.n * THREAD_NS > most;
	if (most)
		free(tids.tid);
	return is;
}

/*
 * Later attempts may hold threads longer, or a busy machine could never be probed. A removal must succeed in the end, so it
 * continues with the longer limits at each of its steps instead of starting over, up to 200 ms: a thousand threads take as long
 * on a busy machine. It begins with them where shorter attempts would all be in vain.
 */
static uint64_t limit_of(const struct dp_target *t, int tried, bool crowded)
{
	if (t->doing == DP_REMOVING)
		tried = t->patience.vain_removing + (crowded ? TRIES : 0);
	const uint64_t times = tried < 20           ? 1
	                       : tried < 40         ? 3
	                       : tried < 80         ? 10
	                       : tried < LAST_TRIES ? 25
	                                            : 100,
	               usual = times * DP_FREEZE_LIMIT_NS;
	const uint64_t most = t->patience.max_pause_ns;
	const bool bounded = most && (t->doing != DP_REMOVING || tried < TRIES);
	return bounded && most < usual ? most : usual;
}

static int most_tries(const struct dp_freeze_retry *p)
{
	return p->max_pause_ns ? TRIES_MAX : TRIES;
}

/* Threads that were held in vain run for at least as long, even if we were delayed and held them longer than intended. */
uint64_t dp_freeze_retry_rest(uint64_t held_ns)
{
	const uint64_t from = dp_now_ns(), end = from + (held_ns > REST_NS ? held_ns : REST_NS);
	/* The watchdog's signals end a sleep early. */
	for (uint64_t now = from; now < end; now = dp_now_ns())
		nanosleep(&(struct timespec){(time_t)((end - now) / SECOND_NS), (long)((end - now) % SECOND_NS)}, NULL);
	return dp_now_ns() - from;
}

static uint64_t account(struct dp_freeze_retry *p, const struct dp_freeze *f)
{
	const uint64_t held = f->end_ns - f->begin_ns;
	p->vain += held > 0;
	p->vain_ns += held;
	if (held > p->longest_ns)
		p->longest_ns = held;
	return held;
}

static struct dp_error *waited_for_child(struct dp_error *err)
{
	struct dp_error *more =
	        dp_error(err->tag, "%s; dynprobe waited %u s for that", err->message, (unsigned)(VFORK_NS / SECOND_NS));
	dp_error_destroy(err);
	return more;
}

static struct dp_error *out_of_patience(const struct dp_freeze_retry *p, struct dp_error *err, uint64_t spent_ns)
{
	char each[80] = "";
	if (p->max_pause_ns)
		snprintf(each, sizeof(each), " (--max-pause: %.4g ms at a time)", (double)p->max_pause_ns / 1e6);
	struct dp_error *more =
	        dp_error(err->tag, "%s; attempts to stop all threads held the others for %.1f ms%s, which is the limit",
	                 err->message, (double)spent_ns / 1e6, each);
	dp_error_destroy(err);
	return more;
}

struct dp_error *dp_freeze_with_retry(struct dp_target *t, struct dp_freeze *ret)
{
	const uint64_t most = t->patience.most_ns ? t->patience.most_ns : MOST_NS;
	const bool crowded = t->doing == DP_REMOVING && dp_target_is_crowded(t);
	const uint64_t until = dp_now_ns() + VFORK_NS;
	uint64_t spent = 0;
	for (int tried = 0;; tried++) {
		const uint64_t usual = limit_of(t, tried, crowded), left = most - spent > LEAST_NS ? most - spent : LEAST_NS;
		struct dp_error *err = dp_freeze_all(&t->process, usual < left ? usual : left, ret);
		if (!err) {
			t->process.alive = ret->thread[0].tid; /* the thread used before may have ended */
			return NULL;
		}
		const uint64_t held = account(&t->patience, ret);
		t->patience.vain_removing += t->doing == DP_REMOVING;
		spent += held;
		if (!is_passing(err))
			return err;
		if (err->tag == DP_TAG_VFORK && dp_now_ns() >= until)
			return waited_for_child(err);
		if (spent >= most || tried + 1 >= most_tries(&t->patience))
			return out_of_patience(&t->patience, err, spent);
		dp_error_destroy(err);
		DP_TRY(dp_target_progress(t, 0, 0));
		t->patience.rested_ns += dp_freeze_retry_rest(held);
	}
}
