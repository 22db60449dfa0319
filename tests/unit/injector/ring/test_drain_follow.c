/* SPDX-License-Identifier: MIT */
/* Rings of fork children: whose records they hold, and when others may have them. */
#include "injector/ring/drain.h"
#include "tests/unit/agent/world.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define RING 16384u

static struct dp_debug_ctx *w;
static struct dp_drain *d;
static enum dp_owner_state answer; /* about all but the target's threads, which live */
static unsigned hits;
static pid_t pid, tid;
static struct dp_slot_owner asked; /* the last one */

static bool lives(pid_t ns_tid, void *data)
{
	(void)ns_tid;
	(void)data;
	return true;
}

static enum dp_owner_state state(const struct dp_slot_owner *owner, void *data)
{
	(void)data;
	asked = *owner;
	return owner->process ? answer : DP_OWNER_LIVES;
}

static void see(const struct dp_hit *hit, void *data)
{
	(void)data;
	hits++;
	pid = hit->pid;
	tid = hit->tid;
}

static pid_t set_up(unsigned nhits)
{
	int status = -1;

	w = world_create(2, RING, DP_ID_SELF);
	w->control->follow = (struct dp_follow){.on = 1, .tid_offset = world_tid_offset()};
	cr_assert_null(dp_drain_create(w->control, w->size, &d));
	dp_drain_follow(d, state);
	pid_t child = fork();
	if (!child)
		_exit(world_hits(w, nhits) != nhits);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
	return child;
}

static void tear_down(void)
{
	dp_drain_destroy(d);
	world_destroy(w);
}

static void reap_as(enum dp_owner_state as)
{
	answer = as;
	dp_drain_reap(d, lives, NULL);
}

static uint64_t word(unsigned i)
{
	return *dp_slot_word(&w->slots[i]);
}

Test(drain_follow, hits_name_their_process_and_those_of_the_target_do_not)
{
	const pid_t child = set_up(5);

	cr_assert_null(dp_drain_run(d, true, see, NULL));
	cr_expect_eq(hits, 5);
	cr_expect_eq(pid, child);
	cr_expect_eq(tid, child);
	cr_assert_eq(world_hits(w, 1), 1);
	cr_assert_null(dp_drain_run(d, true, see, NULL));
	cr_expect_eq(hits, 6);
	cr_expect_eq(pid, 0);
	cr_expect_eq(tid, getpid());
	tear_down();
}

Test(drain_follow, ring_of_an_ended_process_is_drained_and_then_free_for_all)
{
	set_up(5);
	reap_as(DP_OWNER_PROCESS_ENDED);
	cr_expect_eq(word(0) >> 32, DP_SLOT_USED, "it has records");
	cr_assert_null(dp_drain_run(d, true, see, NULL));
	reap_as(DP_OWNER_LIVES);
	cr_expect_eq(word(0) >> 32, DP_SLOT_USED);
	reap_as(DP_OWNER_PROCESS_ENDED);
	cr_expect_eq(word(0), dp_slot_pack(0, DP_SLOT_DEAD));
	cr_expect_eq(w->slots[0].process, DP_PROCESS_NONE);
	cr_assert_eq(world_hits(w, 1), 1);
	cr_expect_eq(w->slots[0].process, 0);
	cr_expect_eq(w->slots[0].pid, 0);
	tear_down();
}

Test(drain_follow, ring_of_an_ended_thread_waits_for_its_process)
{
	set_up(5);
	cr_assert_null(dp_drain_run(d, true, see, NULL));
	reap_as(DP_OWNER_ENDED);
	cr_expect_eq(word(0), dp_slot_pack(0, DP_SLOT_DEAD));
	cr_expect_eq(w->slots[0].process, 1);
	cr_assert_eq(world_hits(w, 1), 1);
	cr_expect_eq(w->slots[1].state, DP_SLOT_USED, "not that one");
	const uint64_t freed = w->control->slots_freed;
	reap_as(DP_OWNER_PROCESS_ENDED);
	cr_expect_eq(w->slots[0].process, DP_PROCESS_NONE);
	cr_expect_eq(w->control->slots_freed, freed + 1, "who had found none searches again");
	tear_down();
}

/* A slot that is being claimed still names its former owner, here process 1. */
Test(drain_follow, claim_of_the_target_is_not_its_former_owners)
{
	set_up(1);
	cr_assert_null(dp_drain_run(d, true, see, NULL));
	*dp_slot_word(&w->slots[0]) = dp_slot_pack(4711 | DP_TID_PENDING, DP_SLOT_CLAIM);
	reap_as(DP_OWNER_PROCESS_ENDED);
	cr_expect_eq(word(0), dp_slot_pack(4711 | DP_TID_PENDING, DP_SLOT_CLAIM));
	tear_down();
}

Test(drain_follow, claim_of_a_process_is_free_for_all_after_its_end)
{
	const uint64_t claim = dp_slot_pack(2 | DP_TID_CHILD, DP_SLOT_CLAIM);

	set_up(1);
	cr_assert_null(dp_drain_run(d, true, see, NULL));
	*dp_slot_word(&w->slots[0]) = claim;
	reap_as(DP_OWNER_LIVES);
	cr_expect_eq(word(0), claim);
	reap_as(DP_OWNER_ENDED);
	cr_expect_eq(word(0), claim);
	reap_as(DP_OWNER_PROCESS_ENDED);
	cr_expect_eq(asked.process, 2);
	cr_expect_eq(asked.pid, 0, "that is its former owner's");
	cr_expect_eq(word(0), dp_slot_pack(0, DP_SLOT_DEAD));
	cr_assert_eq(world_hits(w, 1), 1);
	cr_expect_eq(w->slots[0].process, 0, "taken by the target");
	tear_down();
}
