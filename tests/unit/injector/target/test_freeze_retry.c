/* SPDX-License-Identifier: MIT */
/*
 * Threads that do not all stop in time: those that were stopped are released, run for at least as long, and everything is
 * counted.
 */
#include "helper_tracee.h"

#include "injector/target/target.h"
#include "injector/tracee/proc/proc.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_US 100000

static void *sleep_thread(void *arg)
{
	tr->value[0] = syscall(SYS_gettid);
	for (;;)
		pause();
	return arg;
}

static bool is_traced(long tid)
{
	struct dp_buf status;
	dp_buf_init(&status);
	const bool traced = dp_proc_slurp(&status, "/proc/self/task/%ld/status", tid) &&
	                    dp_status_long(dp_buf_str(&status), "TracerPid", 0) != 0;
	dp_buf_fini(&status);
	return traced;
}

/* The first thread, which is stopped last, waits for a vfork child as soon as it sees that others are being stopped. */
static void evade(void)
{
	pthread_t t;
	for (int i = 0; i < 30; i++)
		pthread_create(&t, NULL, sleep_thread, NULL);
	tr_await_value(&tr->value[0], 1);
	for (tr->ready = 1;;) {
		if (!is_traced(tr->value[0]))
			continue;
		const pid_t child = vfork();
		if (!child) {
			tr_sleep_us(CHILD_US);
			_exit(0);
		}
		waitpid(child, NULL, 0);
		tr->calls++;
	}
}

static struct dp_target of(pid_t pid, uint64_t most_ns)
{
	return (struct dp_target){.process = tr_process(pid), .patience = {.most_ns = most_ns}};
}

/* Repeats until a freeze failed: the first thread is not always quick enough. */
static struct dp_error *freeze_in_vain(struct dp_target *t)
{
	struct dp_error *err = NULL;
	struct dp_freeze f;
	for (int i = 0; i < 1000 && !err && !t->patience.vain; i++) {
		err = dp_freeze_with_retry(t, &f);
		if (!err)
			dp_thaw_all(&f);
	}
	cr_assert(t->patience.vain, "no freeze failed");
	return err;
}

Test(freeze_retry, who_is_held_in_vain_runs_for_as_long_and_is_counted, .timeout = 100)
{
	const pid_t pid = tr_spawn(evade);
	struct dp_target t = of(pid, 0);
	dp_error_destroy(freeze_in_vain(&t));
	const struct dp_freeze_retry *p = &t.patience;
	cr_expect_gt(p->vain_ns, 0);
	cr_expect(p->longest_ns && p->longest_ns <= p->vain_ns);
	cr_expect_geq(p->rested_ns, p->vain_ns);
	tr_kill(pid);
}

Test(freeze_retry, tries_in_vain_end_with_what_they_may_cost, .timeout = 100)
{
	const pid_t pid = tr_spawn(evade);
	struct dp_target t = of(pid, 1);
	t.patience.max_pause_ns = 2000000;
	struct dp_error *err = freeze_in_vain(&t);
	cr_assert(err && (err->tag == DP_TAG_VFORK || err->tag == DP_TAG_UNSTOPPABLE));
	cr_expect(strstr(err->message, "which is the limit"), "%s", err->message);
	cr_expect(strstr(err->message, "--max-pause: 2 ms"), "%s", err->message);
	cr_expect_eq(t.patience.vain, 1);
	dp_error_destroy(err);
	tr_kill(pid);
}

Test(freeze_retry, a_rest_is_as_long_as_what_it_is_for)
{
	cr_expect_geq(dp_freeze_retry_rest(0), 10000000);
	cr_expect_geq(dp_freeze_retry_rest(30000000), 30000000);
}
