/* SPDX-License-Identifier: MIT */
/*
 * A hit that waits for a snapshot: its thread resumes in any case, one thread waits at a time, and hits that did not wait are
 * counted.
 */
#include "agent/ring/park.h"
#include "tests/unit/until.h"

#include <criterion/criterion.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LONG_NS UINT64_C(600000000000)

static struct dp_park park;
static uint32_t self;
static const struct dp_regs regs = {.gpr = {1, 2, 3, 4, 5}, .rip = 0x1234};

static void begin(void)
{
	self = (uint32_t)getpid();
	park = (struct dp_park){.served = 1, .left = 100, .wait_ns = LONG_NS, .salt = 1000};
}

static uint64_t park_at(uint32_t probe)
{
	return dp_park(&park, &regs, &(const struct dp_parked){.probe = probe, .pid = self, .process = 3});
}

struct hit {
	pthread_t thread;
	uint64_t id;
};

static void *hit(void *arg)
{
	struct hit *h = arg;
	h->id = park_at(7);
	return NULL;
}

static void await(uint32_t state)
{
	cr_assert(until(DP_LOAD(&park.state) == state));
}

static void answer(void)
{
	DP_STORE(&park.state, DP_PARK_DONE);
	syscall(SYS_futex, &park.state, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

Test(park, the_tool_sees_the_hit_and_lets_it_go, .init = begin)
{
	struct hit h;

	cr_assert_eq(pthread_create(&h.thread, NULL, hit, &h), 0);
	await(DP_PARK_PARKED);
	cr_expect_eq(park.probe, 7);
	cr_expect_eq(park.owner >> 32, 3);
	cr_expect_eq(park.id, 1001);
	cr_expect_neq((uint32_t)park.owner, (uint32_t)getpid());
	cr_expect_eq(memcmp(&park.regs, &regs, sizeof(regs)), 0);
	answer();
	pthread_join(h.thread, NULL);
	cr_expect_eq(h.id, 1001);
	cr_expect_eq(park.state, DP_PARK_FREE);
	cr_expect_eq(park.owner, 0);
	cr_expect_eq(park.left, 99);
	cr_expect_eq(park.late + park.missed + park.over, 0);
}

Test(park, nobody_waits_where_no_tool_answers, .init = begin)
{
	park.served = 0;
	cr_expect_eq(park_at(0), 0);
	cr_expect_eq(park.missed, 1);
	cr_expect_eq(park.left, 100);
}

Test(park, a_dead_tool_costs_one_wait_and_only_one, .init = begin)
{
	park.wait_ns = 1000000;
	cr_expect_eq(park_at(0), 0);
	cr_expect_eq(park.late, 1);
	cr_expect_eq(park.state, DP_PARK_FREE);
	park.wait_ns = LONG_NS; /* a waiting hit would now block for ten minutes */
	cr_expect_eq(park_at(0), 0);
	cr_expect_eq(park.late, 1);
	cr_expect_eq(park.missed, 1);
}

Test(park, a_second_hit_does_not_queue, .init = begin)
{
	struct hit h;

	cr_assert_eq(pthread_create(&h.thread, NULL, hit, &h), 0);
	await(DP_PARK_PARKED);
	cr_expect_eq(park_at(9), 0);
	cr_expect_eq(park.missed, 1);
	cr_expect_eq(park.probe, 7, "it does not overwrite the first hit either");
	answer();
	pthread_join(h.thread, NULL);
	cr_expect_eq(h.id, 1001);
}

Test(park, limits_of_number_and_rate_are_kept, .init = begin)
{
	park.left = 0;
	cr_expect_eq(park_at(0), 0);
	park.left = 5;
	park.next_tsc = dp_rdtsc() + (UINT64_C(1) << 40);
	cr_expect_eq(park_at(0), 0);
	cr_expect_eq(park.over, 2);
	cr_expect_eq(park.left, 5);
	cr_expect_eq(park.state, DP_PARK_FREE);
}

/* Otherwise a program that hits all the time would only wait. */
Test(park, the_program_runs_for_as_long_as_a_hit_has_waited, .init = begin)
{
	struct hit h;

	cr_assert_eq(pthread_create(&h.thread, NULL, hit, &h), 0);
	await(DP_PARK_PARKED);
	const uint64_t waits = dp_rdtsc();
	usleep(1000); /* the program must then run for at least as long */
	const uint64_t answered = dp_rdtsc();
	answer();
	pthread_join(h.thread, NULL);
	cr_expect_eq(h.id, 1001);
	cr_expect_geq(park.next_tsc, answered + (answered - waits));
}

static volatile sig_atomic_t signals;

static void note(int sig)
{
	(void)sig;
	signals = signals + 1;
}

/* A handler that leaves by longjmp would occupy the place forever. */
Test(park, a_signal_waits_until_the_hit_goes_on, .init = begin)
{
	struct sigaction action = {.sa_handler = note};
	struct hit h;

	sigaction(SIGUSR1, &action, NULL);
	cr_assert_eq(pthread_create(&h.thread, NULL, hit, &h), 0);
	await(DP_PARK_PARKED);
	pthread_kill(h.thread, SIGUSR1);
	usleep(20000); /* long enough for a wrongly delivered signal */
	cr_expect_eq(signals, 0);
	cr_expect_eq(DP_LOAD(&park.state), DP_PARK_PARKED);
	answer();
	pthread_join(h.thread, NULL);
	cr_expect_eq(signals, 1);
	cr_expect_eq(h.id, 1001);
}

Test(park, a_tool_that_cannot_take_it_lets_it_go, .init = begin)
{
	struct hit h;

	cr_assert_eq(pthread_create(&h.thread, NULL, hit, &h), 0);
	await(DP_PARK_PARKED);
	DP_STORE(&park.state, DP_PARK_REFUSED);
	syscall(SYS_futex, &park.state, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
	pthread_join(h.thread, NULL);
	cr_expect_eq(h.id, 0);
	cr_expect_eq(park.missed, 1);
	cr_expect_eq(park.state, DP_PARK_FREE, "the place is free for the next");
}

/* The parent waits for the child and could not be stopped for the snapshot that the child waits for. */
Test(park, a_vfork_child_does_not_wait, .init = begin, .timeout = 20)
{
	self++;
	cr_expect_eq(park_at(0), 0);
	cr_expect_eq(park.missed, 1);
	cr_expect_eq(park.left, 100);
	cr_expect_eq(park.state, DP_PARK_FREE);
}

static volatile bool leaves;

static void *leave(void *arg)
{
	(void)arg;
	while (leaves) {
		if (DP_LOAD(&park.state) == DP_PARK_FREE) {
			sched_yield(); /* both threads may have one processor */
			continue;
		}
		uint32_t parked = DP_PARK_PARKED; /* as in dp_park_leave() */
		DP_STORE(&park.served, 0);
		__atomic_compare_exchange_n(&park.state, &parked, DP_PARK_REFUSED, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
		syscall(SYS_futex, &park.state, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
		while (leaves && !DP_LOAD(&park.served))
			sched_yield();
	}
	return NULL;
}

/* The tool leaves between the thread's read of `served` and its wait, at a varying moment. Fewer times on a busy processor. */
Test(park, a_tool_that_leaves_at_any_moment_leaves_nobody_waiting, .init = begin, .timeout = 120)
{
	pthread_t tool;
	const time_t end = time(NULL) + 10;
	uint64_t times = 0;

	leaves = true;
	cr_assert_eq(pthread_create(&tool, NULL, leave, NULL), 0);
	for (; times < 20000 && time(NULL) < end; times++) {
		park.left = 100;
		park.next_tsc = 0; /* no interval between waits */
		DP_STORE(&park.served, 1);
		cr_assert_eq(park_at(0), 0);
	}
	leaves = false;
	pthread_join(tool, NULL);
	cr_expect_eq(park.late, 0);
	cr_expect_gt(times, 0);
	cr_expect_eq(park.missed, times);
}

/* The tool may look again while the others run: the thread stays until the tool lets it go. */
Test(park, one_that_is_kept_waits_until_it_is_let_go, .init = begin)
{
	struct hit h;

	cr_assert_eq(pthread_create(&h.thread, NULL, hit, &h), 0);
	await(DP_PARK_PARKED);
	DP_STORE(&park.state, DP_PARK_KEPT);
	syscall(SYS_futex, &park.state, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
	usleep(20000); /* long enough for a wrong wakeup */
	cr_expect_eq(DP_LOAD(&park.state), DP_PARK_KEPT);
	cr_expect_eq(park_at(9), 0, "no other hit waits meanwhile");
	answer();
	pthread_join(h.thread, NULL);
	cr_expect_eq(h.id, 1001);
	cr_expect_eq(park.state, DP_PARK_FREE);
}

Test(park, one_that_is_kept_and_then_given_up_has_no_snapshot, .init = begin)
{
	struct hit h;

	cr_assert_eq(pthread_create(&h.thread, NULL, hit, &h), 0);
	await(DP_PARK_PARKED);
	DP_STORE(&park.state, DP_PARK_KEPT);
	syscall(SYS_futex, &park.state, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
	DP_STORE(&park.state, DP_PARK_REFUSED);
	syscall(SYS_futex, &park.state, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
	pthread_join(h.thread, NULL);
	cr_expect_eq(h.id, 0);
	cr_expect_eq(park.missed, 1);
	cr_expect_eq(park.state, DP_PARK_FREE);
}

static void *keep(void *arg)
{
	(void)arg;
	for (uint32_t parked = DP_PARK_PARKED;
	     !__atomic_compare_exchange_n(&park.state, &parked, DP_PARK_KEPT, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);)
		parked = DP_PARK_PARKED;
	return NULL;
}

/* The tool died: what it saw is unknown, but the thread resumes after its timeout. */
Test(park, one_that_is_kept_goes_on_at_its_end, .init = begin, .timeout = 20)
{
	pthread_t tool;

	park.wait_ns = 200000000;
	cr_assert_eq(pthread_create(&tool, NULL, keep, NULL), 0);
	cr_expect_eq(park_at(0), 1001);
	pthread_join(tool, NULL);
	cr_expect_eq(park.late, 0);
	cr_expect_eq(park.state, DP_PARK_FREE);
}
