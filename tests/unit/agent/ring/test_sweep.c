/* SPDX-License-Identifier: MIT */
/* Slots of threads that have ended, without a tool that frees them. */
#include "tests/unit/agent/world.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#define RING  16384u
#define SLOTS 4u

static struct dp_debug_ctx *w;

static void begin(void)
{
	w = world_create(SLOTS, RING, DP_ID_SELF);
	w->control->overwrite = 1;
}

static void end(void)
{
	world_destroy(w);
}

/* The test makes up keys: glibc gives a new thread the TCB of one that has ended. */
static struct dp_slot *get(uint64_t n, uint32_t tid)
{
	struct dp_thread t = {.key = UINT64_C(0x7f0000000000) + n * 4096, .tid = tid};
	struct dp_slot *slot = dp_thread_slot(w->agent, &t);

	if (slot)
		cr_assert(dp_thread_announce(w->agent, slot, &t));
	return slot;
}

static void *tell_tid(void *arg)
{
	*(uint32_t *)arg = (uint32_t)gettid();
	return NULL;
}

/* The id of a thread that has ended for the kernel, too: pthread_join() may return a moment earlier. */
static uint32_t dead_tid(void)
{
	pthread_t thread;
	uint32_t tid;

	cr_assert_eq(pthread_create(&thread, NULL, tell_tid, &tid), 0);
	pthread_join(thread, NULL);
	while (!tgkill(getpid(), (pid_t)tid, 0))
		sched_yield();
	return tid;
}

Test(sweep, slots_of_threads_that_are_gone_are_taken_over, .init = begin, .fini = end)
{
	uint32_t self = (uint32_t)gettid();

	for (uint64_t n = 0; n < SLOTS; n++)
		cr_assert_eq(get(n, n == 2 ? self : dead_tid()), &w->slots[n]);
	cr_expect_eq(get(10, self), &w->slots[0]);
	cr_expect_eq(get(11, self), &w->slots[1]);
	cr_expect_eq(get(12, self), &w->slots[3], "a living thread keeps its slot");
	cr_expect_eq(*dp_slot_word(&w->slots[2]), dp_slot_pack(self, DP_SLOT_USED));
	cr_expect_null(get(13, self));
	cr_expect_eq(w->control->slots_freed, 1);
}

static void collect(const struct dp_record *r, void *data)
{
	uint64_t **to = data;

	*(*to)++ = r->probe == DP_RECORD_THREAD ? *(const uint64_t *)(const void *)r->payload : r->probe;
}

/* Old and new records share the ring, and each keeps its thread. */
Test(sweep, the_old_records_stay_in_front_of_the_new_ones, .init = begin, .fini = end)
{
	uint32_t dead[SLOTS], self = (uint32_t)gettid();
	uint64_t seen[8] = {0}, *to = seen;
	struct dp_record *r;

	for (uint64_t n = 0; n < SLOTS; n++)
		get(n, dead[n] = dead_tid());
	r = dp_ring_reserve(w->agent, &w->slots[0], 16);
	dp_ring_commit(r, 16, 3);
	cr_assert_eq(get(20, self), &w->slots[0]);
	r = dp_ring_reserve(w->agent, &w->slots[0], 16);
	dp_ring_commit(r, 16, 4);
	world_drain(&w->slots[0], collect, &to);
	cr_expect_eq(to - seen, 4);
	cr_expect(seen[0] == dead[0] && seen[1] == 3 && seen[2] == self && seen[3] == 4);
}

Test(sweep, is_the_tools_business_while_there_is_one, .init = begin, .fini = end)
{
	w->control->overwrite = 0;
	for (uint64_t n = 0; n < SLOTS; n++)
		get(n, dead_tid());
	for (unsigned i = 0; i < 5000; i++)
		cr_assert_null(get(10, (uint32_t)gettid()));
	cr_expect_eq(w->control->slots_freed, 0);
}

/* The agent is not told when a thread ends: it checks now and then. */
Test(sweep, a_thread_without_a_slot_gets_one_after_a_while, .init = begin, .fini = end)
{
	uint32_t self = (uint32_t)gettid();
	unsigned tries = 0;

	for (uint64_t n = 0; n < SLOTS; n++)
		get(n, self);
	cr_assert_null(get(10, self));
	for (unsigned i = 0; i < 100; i++)
		cr_assert_null(get(10, self));
	*dp_slot_word(&w->slots[1]) = dp_slot_pack(dead_tid(), DP_SLOT_USED);
	while (!get(10, self))
		cr_assert_lt(++tries, 10000);
	cr_expect_gt(tries, 100, "not at every hit");
	cr_expect_eq(w->slots[1].key, UINT64_C(0x7f0000000000) + 10 * 4096);
}

/* ---- many threads -------------------------------------------------------------------------------- */

#define LIVES 200u

static unsigned hits_made;

static void *short_life(void *arg)
{
	uint64_t value = 1;

	(void)arg;
	for (unsigned i = 0; i < 50; i++)
		__atomic_fetch_add(&hits_made, world_hit(w, 0, &value, 8), __ATOMIC_RELAXED);
	return NULL;
}

static void *generation(void *arg)
{
	pthread_t thread[3];

	(void)arg;
	for (unsigned life = 0; life < LIVES; life++) {
		for (unsigned i = 0; i < 3; i++)
			cr_assert_eq(pthread_create(&thread[i], NULL, short_life, NULL), 0);
		for (unsigned i = 0; i < 3; i++)
			pthread_join(thread[i], NULL);
	}
	return NULL;
}

/* Two generations of threads at a time compete for fewer slots than there are threads; every hit is recorded or counted. */
Test(sweep, threads_come_and_go_and_every_hit_is_accounted_for, .init = begin, .fini = end)
{
	pthread_t other;
	unsigned survivors = 0;

	pthread_create(&other, NULL, generation, NULL);
	generation(NULL);
	pthread_join(other, NULL);
	for (unsigned i = 0; i < SLOTS; i++)
		survivors += world_drain(&w->slots[i], NULL, NULL);
	cr_expect_eq(survivors + w->lost[0].overwritten, hits_made);
	cr_expect_eq(hits_made + w->lost[0].no_slot + w->lost[0].full, 2 * LIVES * 3 * 50);
	cr_expect_gt(hits_made, LIVES * 50);
}
