/* SPDX-License-Identifier: MIT */
/*
 * The tool's side of a waiting hit: a thread that died while it waited, one that continues to wait, and a program that is now
 * under a seccomp filter.
 */
#include "helper_tracee.h"

#include "injector/park.h"
#include "injector/target/target.h"

#include <criterion/criterion.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct dp_control control;

static struct dp_target target(pid_t pid)
{
	struct dp_target t = {.process = {.pid = pid, .alive = pid, .ns_pid = pid}, .installed = true};
	control = (struct dp_control){.park = {.wait_ns = UINT64_C(3600000000000)}};
	t.data = (uint8_t *)&control;
	return t;
}

static void parked(uint32_t state, pid_t tid)
{
	control.park.id = 5;
	control.park.owner = dp_park_owner((uint32_t)tid, 0);
	control.park.state = state;
}

Test(park, a_hit_is_taken_at_each_hold_and_goes_on_when_all_was_seen)
{
	struct dp_target t = target(getpid());
	struct dp_park_hit hit;
	parked(DP_PARK_PARKED, getpid());
	cr_assert(dp_park_inspect(&t, &hit));
	cr_expect_not(dp_park_waits(&t, &hit), "it is not taken yet");
	for (int i = 0; i < 3; i++) {
		cr_expect(dp_park_take(&t, &hit));
		cr_expect_eq(control.park.state, DP_PARK_KEPT);
		cr_expect_eq(control.park.served, 0);
		cr_expect(dp_park_waits(&t, &hit));
	}
	struct dp_park_hit other = hit;
	other.id++;
	cr_expect_not(dp_park_take(&t, &other));
	control.park.wait_ns = 1;
	cr_expect_not(dp_park_waits(&t, &hit), "the thread is about to resume");
	dp_park_done(&t);
	cr_expect_eq(control.park.state, DP_PARK_DONE);
	cr_expect_not(dp_park_take(&t, &hit));
	cr_expect_not(dp_park_release(&t), "no thread waits");
}

Test(park, a_hit_that_was_taken_in_vain_goes_without)
{
	struct dp_target t = target(getpid());
	struct dp_park_hit hit;
	parked(DP_PARK_PARKED, getpid());
	cr_assert(dp_park_inspect(&t, &hit) && dp_park_take(&t, &hit));
	cr_expect(dp_park_release(&t));
	cr_expect_eq(control.park.state, DP_PARK_REFUSED);
}

static const uint32_t states[] = {DP_PARK_FREE, DP_PARK_DONE, DP_PARK_REFUSED, DP_PARK_KEPT};

/* In another pid namespace the thread's number has no meaning here. */
Test(park, the_place_of_a_thread_that_died_is_free_again, .timeout = 60)
{
	for (unsigned nested = 0; nested < 2; nested++)
		for (unsigned i = 0; i < sizeof(states) / sizeof(*states); i++) {
			struct dp_target t = target(getpid());
			struct dp_park_hit hit;
			t.process.nested = nested;
			parked(states[i], 4194304); /* no thread has this id */
			cr_expect(until(({
				cr_expect_not(dp_park_inspect(&t, &hit));
				control.park.state == DP_PARK_FREE && !control.park.owner;
			})));
		}
}

static void end(void)
{
	tr->ready = 1;
	_exit(0);
}

/* A killed process keeps its number until its parent asks. */
Test(park, the_place_of_a_zombie_is_free_again, .timeout = 60)
{
	const pid_t pid = tr_spawn(end);
	struct dp_target t = target(pid);
	struct dp_park_hit hit;
	t.process.nested = true;
	parked(DP_PARK_FREE, pid);
	cr_expect(until(({
		cr_expect_not(dp_park_inspect(&t, &hit));
		!control.park.owner;
	})));
	tr_kill(pid);
}

Test(park, the_place_of_one_that_lives_is_its_own)
{
	for (unsigned nested = 0; nested < 2; nested++) {
		struct dp_target t = target(getpid());
		struct dp_park_hit hit;
		t.process.nested = nested;
		parked(DP_PARK_REFUSED, (pid_t)syscall(SYS_gettid));
		for (int i = 0; i < 30; i++) {
			cr_expect_not(dp_park_inspect(&t, &hit));
			tr_sleep_us(10000);
		}
		cr_expect_eq(control.park.state, DP_PARK_REFUSED);
	}
}

static void *filter(void *arg)
{
	struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	const struct sock_fprog program = {1, &all};
	tr_await_value(&tr->value[0], 1);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(1);
	tr->value[1] = 1;
	for (;;)
		pause();
	return arg;
}

static void be_filtered_later(void)
{
	pthread_t thread;
	for (int i = 0; i < 3; i++)
		pthread_create(&thread, NULL, filter, NULL);
	tr->ready = 1;
	for (;;)
		pause();
}

/* A full ring that overwrites itself needs them, too. */
Test(park, nothing_is_overwritten_in_a_program_that_has_come_under_a_filter, .timeout = 60)
{
	const pid_t pid = tr_spawn(be_filtered_later);
	struct dp_target t = target(pid);
	t.overwrites = true;
	control.overwrite = 1;
	dp_full_look(&t);
	cr_expect_eq(control.overwrite, 1);
	tr->value[0] = 1;
	cr_assert(tr_await_value(&tr->value[1], 1));
	cr_expect(until(({
		dp_full_look(&t);
		dp_target_is_caged(&t);
	})));
	cr_expect_eq(control.overwrite, 0);
	tr_kill(pid);
}

/* Waiting needs system calls. They were allowed when the probes were installed, but may not be any more. */
Test(park, nobody_waits_in_a_program_that_has_come_under_a_filter, .timeout = 60)
{
	const pid_t pid = tr_spawn(be_filtered_later);
	struct dp_target t = target(pid);
	struct dp_park_hit hit;
	cr_expect_not(dp_park_inspect(&t, &hit));
	cr_expect_not(dp_target_is_caged(&t));
	cr_expect_eq(control.park.served, 1);
	tr->value[0] = 1;
	cr_assert(tr_await_value(&tr->value[1], 1));
	cr_expect(until(({
		cr_expect_not(dp_park_inspect(&t, &hit));
		dp_target_is_caged(&t);
	})));
	cr_expect_eq(control.park.served, 0);
	parked(DP_PARK_PARKED, pid);
	cr_expect_not(dp_park_inspect(&t, &hit), "a thread that waits already is released");
	cr_expect_eq(control.park.state, DP_PARK_REFUSED);
	cr_expect_eq(control.park.served, 0);
	tr_kill(pid);
}
