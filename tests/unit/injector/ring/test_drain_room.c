/* SPDX-License-Identifier: MIT */
/* Memory of rings is freed, and no record is lost with it. */
#include "injector/ring/drain.h"
#include "tests/unit/agent/world.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RING  (1u << 20)
#define PAGE  4096u
#define LOOKS 8 /* more than an idle thread keeps its memory for */

static struct dp_debug_ctx *w;
static struct dp_drain *d;
static unsigned seen;
static bool living;

static void set_up(uint64_t pool)
{
	w = world_create(2, RING, DP_ID_SELF);
	w->slots[0].room = w->slots[1].room = 0;
	w->control->pool_first = 2 * DP_ROOM_STEP;
	w->control->pool = pool;
	w->control->pool_most = pool + 2 * DP_ROOM_STEP;
	cr_assert_null(dp_drain_create(w->control, w->size, &d));
	dp_drain_give_back(d);
	living = true;
	seen = 0;
}

static void tear_down(void)
{
	dp_drain_destroy(d);
	world_destroy(w);
}

static void see(const struct dp_hit *hit, void *data)
{
	(void)hit;
	(void)data;
	seen++;
}

static bool is_living(pid_t ns_tid, void *data)
{
	(void)ns_tid;
	(void)data;
	return living;
}

static void drain(void)
{
	cr_assert_null(dp_drain_run(d, true, see, NULL));
}

static void look(void)
{
	for (int i = 0; i < LOOKS; i++) {
		drain();
		dp_drain_reap(d, is_living, NULL);
	}
}

static uint64_t resident(void)
{
	const size_t pages = 2 * RING / PAGE;
	unsigned char in[2 * RING / PAGE];
	uint64_t n = 0;

	cr_assert_not(mincore(w->rings, 2 * RING, in));
	for (size_t i = 0; i < pages; i++)
		n += in[i] & 1;
	return n * PAGE;
}

Test(room, of_a_thread_that_hits_no_more_goes_back)
{
	set_up(2 * RING);
	const unsigned recorded = world_hits(w, 100000);
	cr_expect_eq(w->slots[0].room, RING);
	cr_expect_geq(resident(), RING - PAGE);
	look();
	cr_expect_eq(seen, recorded);
	cr_expect_eq(w->slots[0].room, DP_ROOM_STEP);
	cr_expect_leq(resident(), DP_ROOM_STEP + 3 * PAGE);
	cr_expect_geq(w->control->pool + 3 * PAGE, 2 * RING);
	cr_expect_leq(w->control->pool, 2 * RING);
	cr_expect_eq(world_hits(w, 1000), 1000, "the thread may hit again");
	drain();
	cr_expect_eq(seen, recorded + 1000);
	tear_down();
}

Test(room, that_was_not_read_yet_stays)
{
	set_up(2 * RING);
	const unsigned recorded = world_hits(w, 100000);
	for (int i = 0; i < LOOKS; i++)
		dp_drain_reap(d, is_living, NULL);
	cr_expect_eq(w->slots[0].room, RING);
	drain();
	cr_expect_eq(seen, recorded);
	tear_down();
}

Test(room, of_a_thread_that_has_ended_goes_back_as_a_whole)
{
	set_up(2 * RING);
	const unsigned recorded = world_hits(w, 100000);
	living = false;
	look();
	cr_expect_eq(seen, recorded);
	cr_expect_eq(w->slots[0].state, DP_SLOT_DEAD);
	cr_expect_eq(resident(), 0);
	cr_expect_eq(w->control->pool, 2 * RING);
	cr_expect_eq(w->control->pool_first, 2 * DP_ROOM_STEP);
	living = true;
	cr_expect_eq(world_hits(w, 10), 10, "another thread has the slot");
	drain();
	cr_expect_eq(seen, recorded + 10);
	tear_down();
}

/* A slot whose tool was killed while it freed the memory of an ended thread. */
Test(room, slot_that_a_killed_tool_held_is_given_back)
{
	set_up(2 * RING);
	world_hits(w, 1);
	drain();
	w->slots[0].tid = 0;
	w->slots[0].state = DP_SLOT_CLAIM;
	look();
	cr_expect_eq(w->slots[0].state, DP_SLOT_DEAD);
	cr_expect_eq(world_hits(w, 10), 10);
	tear_down();
}

/* A stub's few instructions in two halves: what it has read of the slot, and its one attempt. */
struct half {
	uint64_t pos;
	uint32_t size;
};

static struct half begin_hit(uint32_t size)
{
	const struct half h = {w->slots[0].head, size};

	cr_assert_leq(h.pos + size, w->slots[0].limit);
	return h;
}

static bool end_hit(struct half h)
{
	struct dp_slot *slot = &w->slots[0];
	struct dp_record *r = (struct dp_record *)(uintptr_t)(slot->base + (h.pos & slot->mask));

	if (!dp_cmpxchg_local(&slot->head, h.pos, h.pos + h.size))
		return false;
	r->tsc = dp_rdtsc();
	memset(r->payload, 0xff, h.size - sizeof(*r));
	dp_ring_commit(r, h.size, 0);
	return true;
}

static struct half under_way;
static bool waiting;
static unsigned and_more;

/* Replaces libc's: at the last moment before memory is freed, a preempted thread continues. */
int madvise(void *at, size_t n, int advice)
{
	if (waiting) {
		waiting = false;
		cr_assert(end_hit(under_way));
		and_more = world_hits(w, 3000); /* more than the first step holds */
		cr_assert_geq(and_more, 300);
	}
	return (int)syscall(SYS_madvise, at, n, advice);
}

/*
 * A thread is preempted after it has read the limit, until the tool has decided to free its ring's memory. Then it writes, and
 * continues: none of that may be lost, wherever in the ring it was.
 */
Test(room, that_a_hit_under_way_uses_stays)
{
	for (uint64_t at = 3 * DP_ROOM_STEP; at < RING - 2 * DP_RECORD_MAX; at += 8 * 1021) {
		set_up(4 * RING);
		while (w->slots[0].head < at || w->slots[0].head + DP_RECORD_MAX > w->slots[0].limit)
			cr_assert_eq(world_hits(w, 1), 1);
		drain();
		const unsigned before = seen;
		under_way = begin_hit(at % 16 ? DP_RECORD_MAX : 64);
		waiting = true;
		look();
		cr_assert_not(waiting);
		drain();
		cr_assert_eq(seen - before, 1 + and_more, "at %lu: %u of %u", at, seen - before, 1 + and_more);
		struct dp_loss loss;
		dp_drain_loss(d, 0, &loss);
		cr_assert_eq(loss.damaged + loss.abandoned, 0);
		cr_assert_eq(loss.full + and_more, 3000, "hits that do not fit are counted");
		tear_down();
	}
}

static volatile bool over;
static uint64_t recorded_by_it;

static void *hit_now_and_then(void *arg)
{
	(void)arg;
	for (uint64_t i = 1; !over; i++) {
		recorded_by_it += world_hit(w, 0, &i, sizeof(i));
		for (volatile unsigned spin = (uint32_t)i * 2654435761u >> 25; spin; spin--)
			;
	}
	return NULL;
}

/* False if the reader has made no progress in a full ring for many looks. */
static bool goes_on(void)
{
	static uint64_t tail;
	static unsigned looks;

	looks = w->slots[0].tail == tail && w->slots[0].head - tail > RING / 2 ? looks + 1 : 0;
	tail = w->slots[0].tail;
	return looks < 1000000;
}

/* The tool frees the memory of a ring again and again while its thread hits. */
Test(room, goes_back_while_its_thread_hits)
{
	pthread_t thread;

	set_up(4 * RING);
	cr_assert_not(pthread_create(&thread, NULL, hit_now_and_then, NULL));
	for (unsigned i = 0, small = 0; i < 100000 || small < 100; i++) {
		cr_assert(goes_on(), "the ring is full and not read: a record in it was erased");
		cr_assert_null(dp_drain_run(d, false, see, NULL));
		w->control->starved++; /* as if others needed it */
		const uint64_t room = w->slots[0].room;
		dp_drain_reap(d, is_living, NULL);
		small += w->slots[0].room < room;
	}
	over = true;
	pthread_join(thread, NULL);
	drain();
	cr_expect_eq(seen, recorded_by_it);
	struct dp_loss loss;
	dp_drain_loss(d, 0, &loss);
	cr_expect_eq(loss.damaged + loss.abandoned, 0);
	tear_down();
}

/* A limit that was computed before the ring shrank must not come into force afterwards. */
Test(room, limit_that_was_computed_before_comes_too_late)
{
	uint64_t shut[3] = {0};

	set_up(4 * RING);
	for (unsigned i = 0; i < 3; i++) {
		const uint64_t lap = w->slots[0].head & ~(uint64_t)(RING - 1);
		while (w->slots[0].head < lap + (RING / 4 >> i))
			cr_assert_eq(world_hits(w, 1), 1);
		const uint64_t old = w->slots[0].limit;
		look();
		shut[i] = w->slots[0].limit;
		cr_expect_lt(shut[i], old);
		cr_expect_not(dp_cmpxchg(&w->slots[0].limit, old, lap + RING), "the last step in ring.c");
		world_hits(w, 1);
	}
	cr_expect(shut[0] != shut[1] && shut[1] != shut[2] && shut[0] != shut[2],
	          "a hit that began two changes ago would not notice");
	tear_down();
}

Test(room, is_taken_from_those_that_do_not_use_it_when_it_is_short)
{
	set_up(RING);
	const unsigned recorded = world_hits(w, 100000); /* all 100000 */
	drain();
	for (int i = 0; i < 3; i++) { /* the thread keeps hitting, and needs little memory */
		world_hits(w, 10);
		drain();
		dp_drain_reap(d, is_living, NULL);
	}
	cr_expect_leq(w->slots[0].room, 4 * DP_ROOM_STEP);
	cr_expect_geq(w->control->pool, RING / 2);
	cr_expect_eq(seen, recorded + 30);
	tear_down();
}
