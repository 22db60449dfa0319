/* SPDX-License-Identifier: MIT */
#include "tests/unit/agent/world.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define RING 16384u

static uint64_t word(const struct dp_slot *slot)
{
	return *dp_slot_word((struct dp_slot *)slot);
}

static struct dp_thread thread_of(const struct dp_debug_ctx *w, uint64_t key, uint32_t tid)
{
	return (struct dp_thread){.key = key, .tid = tid, .identity = w->agent->identity};
}

/* The announced slot for this key and tid. */
static struct dp_slot *get(struct dp_debug_ctx *w, uint64_t key, uint32_t tid)
{
	struct dp_thread t = thread_of(w, key, tid);
	struct dp_slot *slot = dp_thread_slot(w->agent, &t);

	if (slot)
		dp_thread_announce(w->agent, slot, &t);
	return slot;
}

/* What the tool does with the slot of a thread that has ended. */
static void reap(struct dp_debug_ctx *w, struct dp_slot *slot)
{
	world_drain(slot, NULL, NULL);
	*dp_slot_word(slot) = dp_slot_pack(0, DP_SLOT_DEAD);
	w->control->slots_freed++;
}

Test(thread, same_thread_keeps_its_slot)
{
	struct dp_debug_ctx *w = world_create(8, RING, DP_ID_SELF);
	struct dp_slot *slot = get(w, 0x7f0000001000, 100);

	cr_expect_eq(slot, &w->slots[0]);
	cr_expect_eq(word(slot), dp_slot_pack(100, DP_SLOT_USED));
	cr_expect_eq(slot->key, 0x7f0000001000);
	cr_expect_eq(get(w, 0x7f0000001000, 100), slot);
	cr_expect_eq(slot->head, 24, "announced once");
	cr_expect_eq(get(w, 0x7f0000002000, 101), &w->slots[1]);
	world_destroy(w);
}

static void last_tid(const struct dp_record *r, void *data)
{
	if (r->probe == DP_RECORD_THREAD)
		*(uint64_t *)data = *(const uint64_t *)r->payload;
}

Test(thread, reused_tcb_announces_the_new_thread_in_the_same_slot)
{
	struct dp_debug_ctx *w = world_create(8, RING, DP_ID_SELF);
	struct dp_slot *slot = get(w, 0x7f0000001000, 100);
	uint64_t tid = 0;

	slot->stack_lo = 1;
	slot->stack_hi = 2;
	cr_expect_eq(get(w, 0x7f0000001000, 200), slot);
	cr_expect_eq(word(slot), dp_slot_pack(200, DP_SLOT_USED));
	cr_expect_eq(slot->settled, 24, "the old thread's reservation is final");
	cr_expect_eq(slot->stack_lo | slot->stack_hi, 0);
	world_drain(slot, last_tid, &tid);
	cr_expect_eq(tid, 200);
	world_destroy(w);
}

/* There is no room for the DP_RECORD_THREAD: the hit is lost as full, and no hit is recorded under the old name. */
Test(thread, no_room_to_announce_loses_the_hit_and_keeps_the_slot_unannounced)
{
	struct dp_debug_ctx *w = world_create(1, RING, DP_ID_SELF);
	uint32_t real = (uint32_t)gettid();

	w->desc[0].reserve = 16;
	while (world_hit(w, 0, "", 0))
		;
	memset(&w->lost[0], 0, sizeof(w->lost[0]));
	world_set_tid(real + 1);
	bool recorded = world_hit(w, 0, "", 0);
	uint64_t full = w->lost[0].full, now = word(&w->slots[0]);
	world_set_tid(real);
	cr_expect(!recorded);
	cr_expect_eq(full, 1);
	cr_expect_eq(now, dp_slot_pack((real + 1) | DP_TID_PENDING, DP_SLOT_USED));
	world_drain(&w->slots[0], NULL, NULL);
	world_set_tid(real + 1);
	recorded = world_hit(w, 0, "", 0);
	world_set_tid(real);
	cr_expect(recorded);
	uint64_t tid = 0;
	world_drain(&w->slots[0], last_tid, &tid);
	cr_expect_eq(tid, real + 1);
	world_destroy(w);
}

Test(thread, slot_taken_over_by_another_thread_is_left_to_it)
{
	struct dp_debug_ctx *w = world_create(8, RING, DP_ID_SELF);
	struct dp_slot *slot = get(w, 0x7f0000001000, 100);

	reap(w, slot);
	cr_expect_eq(get(w, 0x7f0000002000, 101), slot, "a dead slot is the first choice");
	/* The old key's table entry still points to this slot. */
	cr_expect_eq(get(w, 0x7f0000001000, 102), &w->slots[1]);
	cr_expect_eq(get(w, 0x7f0000002000, 101), slot);
	cr_expect_eq(get(w, 0x7f0000001000, 102), &w->slots[1]);
	world_destroy(w);
}

/* The tool suspects that the owner has ended: the owner's next hit makes the tool's next step fail. */
Test(thread, suspected_owner_takes_its_slot_back)
{
	struct dp_debug_ctx *w = world_create(8, RING, DP_ID_SELF);
	struct dp_slot *slot = get(w, 0x7f0000001000, 100);
	uint64_t suspect = dp_slot_pack(100 | DP_TID_SUSPECT, DP_SLOT_USED);

	*dp_slot_word(slot) = suspect;
	struct dp_thread t = thread_of(w, 0x7f0000001000, 100);
	cr_expect_eq(dp_thread_slot(w->agent, &t), slot);
	cr_expect_neq(word(slot), suspect);
	cr_expect(dp_thread_announce(w->agent, slot, &t));
	cr_expect_eq(word(slot), dp_slot_pack(100, DP_SLOT_USED));
	world_destroy(w);
}

Test(thread, exhausted_slots_are_counted_and_found_again_when_freed)
{
	struct dp_debug_ctx *w = world_create(3, RING, DP_ID_SELF);
	uint32_t real = (uint32_t)gettid();

	for (uint32_t i = 0; i < 3; i++)
		cr_assert_not_null(get(w, 0x7f0000001000 + i * 0x1000, 100 + i));
	cr_expect_not(world_hit(w, 1, "", 0));
	cr_expect_not(world_hit(w, 1, "", 0));
	cr_expect_eq(w->lost[1].no_slot, 2);
	reap(w, &w->slots[1]);
	cr_expect(world_hit(w, 1, "", 0));
	cr_expect_eq(word(&w->slots[1]), dp_slot_pack(real, DP_SLOT_USED));
	world_destroy(w);
}

/* All keys hash to one table entry. Those that the table cannot hold still find their slot, by a walk through the slots. */
Test(thread, colliding_keys_all_keep_their_slots)
{
	struct dp_debug_ctx *w = world_create(200, RING, DP_ID_SELF);
	uint64_t keys[200], place = (UINT64_C(0x1000) * DP_HASH_MULT) >> (64 - DP_TABLE_BITS);
	unsigned n = 0;

	for (uint64_t key = 0x1000; n < 200; key += 64)
		if ((key * DP_HASH_MULT) >> (64 - DP_TABLE_BITS) == place)
			keys[n++] = key;
	for (unsigned round = 0; round < 3; round++)
		for (unsigned i = 0; i < 200; i++)
			cr_assert_eq(get(w, keys[i], 1000 + i), &w->slots[i], "round %u key %u", round, i);
	world_destroy(w);
}

/* Far more threads, one after the other, than the table has entries. */
static void churn(enum dp_identity identity)
{
	struct dp_debug_ctx *w = world_create(4, RING, identity);

	for (uint32_t i = 0; i < 5 * DP_TABLE_SIZE; i++) {
		uint64_t key = identity == DP_ID_TID ? 1000 + i : 0x7f0000000000 + (uint64_t)i * 0x801000;
		struct dp_slot *slot = get(w, key, 1000 + i);

		cr_assert_eq(slot, &w->slots[0], "thread %u", i);
		cr_assert_eq(get(w, key, 1000 + i), slot);
		reap(w, slot);
	}
	world_destroy(w);
}

Test(thread, table_survives_many_short_threads)
{
	churn(DP_ID_SELF);
}

Test(thread, table_survives_many_short_threads_known_by_id)
{
	churn(DP_ID_TID);
}

Test(thread, ids_spread_over_the_table)
{
	struct dp_debug_ctx *w = world_create(1000, RING, DP_ID_TID);
	unsigned used = 0;

	for (uint32_t i = 0; i < 1000; i++)
		cr_assert_eq(get(w, 5000 + i, 5000 + i), &w->slots[i]);
	for (uint32_t i = 0; i < DP_TABLE_SIZE; i++)
		used += w->agent->table[i].key != 0;
	cr_expect_eq(used, 1000, "%u of 1000 threads are in the table", used);
	world_destroy(w);
}

Test(thread, lost_table_entry_does_not_cost_a_second_slot)
{
	struct dp_debug_ctx *w = world_create(8, RING, DP_ID_SELF);
	struct dp_slot *slot = get(w, 0x7f0000001000, 100);

	memset(w->agent->table, 0, sizeof(w->agent->table));
	cr_expect_eq(get(w, 0x7f0000001000, 100), slot);
	cr_expect_eq(word(&w->slots[1]), 0);
	world_destroy(w);
}

Test(thread, fork_child_records_nothing_and_is_counted)
{
	struct dp_debug_ctx *w = world_create(8, RING, DP_ID_SELF);
	uint64_t head;
	int status = -1;

	cr_assert(world_hit(w, 0, "", 0));
	head = w->slots[0].head;
	pid_t child = fork();
	if (child == 0)
		_exit(world_hit(w, 3, "", 0) || world_hit(w, 3, "", 0) ? 1 : 0);
	waitpid(child, &status, 0);
	cr_expect_eq(status, 0);
	cr_expect_eq(w->lost[3].forked, 2);
	cr_expect_eq(w->slots[0].head, head);
	cr_expect_eq(word(&w->slots[1]), 0);
	cr_expect(world_hit(w, 0, "", 0), "the parent continues");
	world_destroy(w);
}

/* The child runs in its parent's memory with its thread pointer, while the parent waits: its hits count as the parent's. */
Test(thread, vfork_child_records_in_its_parents_slot)
{
	struct dp_debug_ctx *w = world_create(8, RING, DP_ID_SELF);

	cr_assert(world_hit(w, 0, "", 0));
	if (vfork() == 0) {
		world_hit(w, 1, "", 0);
		_exit(0);
	}
	cr_expect(world_hit(w, 0, "", 0));
	cr_expect_eq(world_drain(&w->slots[0], NULL, NULL), 3);
	cr_expect_eq(word(&w->slots[1]), 0);
	world_destroy(w);
}

/* Identified by id, each thread gets its own slot, also threads that the C library does not know. */
static int raw_clone(void *arg)
{
	return world_hit(arg, 0, "", 0) ? 0 : 1;
}

Test(thread, raw_clone_with_foreign_tls_is_told_apart_by_id)
{
	struct dp_debug_ctx *w = world_create(8, RING, DP_ID_TID);
	char *stack = malloc(65536);
	int status = -1;

	cr_assert(world_hit(w, 0, "", 0));
	pid_t child = clone(raw_clone, stack + 65536, CLONE_VM | SIGCHLD, w);
	waitpid(child, &status, 0);
	cr_expect_eq(status, 0);
	cr_expect_eq(word(&w->slots[0]), dp_slot_pack((uint32_t)gettid(), DP_SLOT_USED));
	cr_expect_eq(word(&w->slots[1]), dp_slot_pack((uint32_t)child, DP_SLOT_USED));
	free(stack);
	world_destroy(w);
}

/* ---- races ----------------------------------------------------------------------------------- */

static struct dp_debug_ctx *race_world;
static pthread_barrier_t barrier;
static uint64_t signalled, signalled_lost;

static void on_signal(int signo)
{
	(void)signo;
	if (world_hit(race_world, 1, "", 0))
		__atomic_fetch_add(&signalled, 1, __ATOMIC_RELAXED);
	else
		__atomic_fetch_add(&signalled_lost, 1, __ATOMIC_RELAXED);
}

static void *first_hit(void *arg)
{
	uint64_t *lost = arg;

	pthread_barrier_wait(&barrier);
	*lost = !world_hit(race_world, 0, "", 0);
	pthread_barrier_wait(&barrier);
	return NULL;
}

/* Threads claim their first slot at the same time, while signals hit them: one slot each, every hit counted. */
Test(thread, racing_first_hits_with_signals_get_one_slot_each)
{
	enum { N = 8, ROUNDS = 150 };
	uint64_t recorded = 0, drained = 0, lost = 0;

	race_world = world_create(N + 2, RING, DP_ID_SELF);
	signal(SIGUSR1, on_signal);
	pthread_barrier_init(&barrier, NULL, N + 1);
	for (int round = 0; round < ROUNDS; round++) {
		pthread_t thread[N];
		uint64_t missed[N] = {0};

		for (int i = 0; i < N; i++)
			pthread_create(&thread[i], NULL, first_hit, &missed[i]);
		pthread_barrier_wait(&barrier);
		for (int i = 0; i < N; i++)
			pthread_kill(thread[i], SIGUSR1);
		pthread_barrier_wait(&barrier);
		for (int i = 0; i < N; i++) {
			pthread_join(thread[i], NULL);
			lost += missed[i];
			recorded += !missed[i];
		}
		for (uint32_t i = 0; i < race_world->control->nslots; i++) {
			drained += world_drain(&race_world->slots[i], NULL, NULL);
			if (round % 2 && word(&race_world->slots[i]))
				reap(race_world, &race_world->slots[i]);
		}
	}
	cr_expect_eq(drained, recorded + signalled, "%lu %lu %lu", drained, recorded, signalled);
	cr_expect_eq(world_lost(race_world), lost + signalled_lost);
	cr_expect_eq(lost, 0);
	world_destroy(race_world);
}
