/* SPDX-License-Identifier: MIT */
/* The flight recorder: without a tool a full ring drops its oldest records, counts them, and stays consistent. */
#include "test_overwrite_world.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

Test(overwrite, the_newest_records_survive_and_the_others_are_counted, .init = begin, .fini = end)
{
	struct seen s;

	for (uint64_t i = 1; i <= 10000; i++)
		cr_assert(world_hit(w, 3, &i, sizeof(i)));
	cr_expect_eq(world_lost(w), 0);
	cr_expect_eq(w->slots[0].tail_tid, (uint64_t)gettid(), "the announcement was overwritten");
	cr_expect(free_is_zero(&w->slots[0]));
	s = take_over(&w->slots[0]);
	cr_expect_eq(s.last[3], 10000);
	cr_expect(!s.gap && !s.other_thread);
	cr_expect_geq(s.n, (RING - RING / 8 - 128) / 24);
	cr_expect_eq(s.n + w->lost[3].overwritten, 10000);
	cr_expect_eq(overwritten(), w->lost[3].overwritten);
	cr_expect_eq(w->slots[0].abandoned, 0);
}

Test(overwrite, nothing_is_given_up_while_a_tool_drains, .init = begin, .fini = end)
{
	struct seen s;

	w->control->overwrite = 0;
	for (uint64_t i = 1; i <= 10000; i++)
		world_hit(w, 3, &i, sizeof(i));
	s = take_over(&w->slots[0]);
	cr_expect_eq(overwritten(), 0);
	cr_expect_eq(s.last[3], s.n);
	cr_expect_eq(s.n + w->lost[3].full, 10000);
}

/* More probes than one tally holds, records of every size, every offset before the ring's end. */
Test(overwrite, every_size_and_every_probe_adds_up, .init = begin, .fini = end)
{
	static uint8_t payload[DP_RECORD_MAX];
	uint64_t next[WORLD_PROBES] = {0};
	struct dp_slot *slot = &w->slots[0];
	struct seen s;

	srand(1);
	for (unsigned i = 0; i < 300000; i++) {
		unsigned probe = (unsigned)rand() % WORLD_PROBES;
		uint32_t limit = rand() % 40 ? 30 : DP_RECORD_MAX / 8 - 2;
		uint32_t reserve = 24 + 8 * ((uint32_t)rand() % (limit - 1));
		w->desc[probe].reserve = reserve;
		next[probe]++;
		memcpy(payload, &next[probe], 8);
		cr_assert(world_hit(w, probe, payload, 8 + (size_t)rand() % (reserve - 23)));
		cr_assert_leq(slot->head - slot->tail, RING);
		cr_assert_leq(slot->limit, slot->tail + RING);
		if (i % 1000 == 0)
			cr_assert(free_is_zero(slot), "after %u", i);
	}
	s = take_over(slot);
	cr_expect(!s.gap && !s.other_thread);
	cr_expect_eq(slot->head, slot->tail);
	for (unsigned i = 0; i < WORLD_PROBES; i++) {
		cr_expect_eq(s.each[i] + w->lost[i].overwritten, next[i]);
		cr_expect_eq(s.last[i], next[i]);
	}
}

Test(overwrite, threads_of_surviving_records_stay_known, .init = begin, .fini = end)
{
	struct dp_slot *slot = &w->slots[0];
	uint32_t real = world_set_tid(1000);

	for (uint32_t tid = 1001; tid < 1500; tid++) {
		uint64_t first = slot->tail_tid;
		for (uint64_t i = 0, n = tid % 97; i < n; i++)
			cr_assert(world_hit(w, 1, &i, 8));
		cr_assert(slot->tail_tid >= first && slot->tail_tid < tid);
		const struct dp_record *oldest = (const struct dp_record *)(uintptr_t)(slot->base + (slot->tail & slot->mask));
		cr_assert(oldest->probe == DP_RECORD_THREAD || slot->tail_tid);
		world_set_tid(tid);
	}
	cr_expect_gt(slot->tail_tid, 1400);
	world_set_tid(real);
}

/* ---- unfinished hits ------------------------------------------------------------------------------ */

static void commit(struct dp_reservation r, unsigned probe)
{
	struct dp_capture capture = {.record = r.record, .slot = r.slot, .desc = &w->desc[probe]};

	r.record->tsc = dp_rdtsc();
	memset(r.record->payload, 0, 8);
	capture.cursor = r.record->payload + 8;
	w->finish(&capture);
}

Test(overwrite, a_hit_under_way_is_not_overtaken, .init = begin, .fini = end)
{
	struct dp_slot *slot = &w->slots[0];
	struct dp_reservation outer;
	uint64_t i, more = 0;

	for (i = 1; i <= 5000; i++)
		cr_assert(world_hit(w, 1, &i, 8));
	outer = world_reserve(w, 0);
	cr_assert(outer.record);
	for (i = 0; i < 5000; i++)
		more += world_hit(w, 2, &i, 8);
	cr_expect_lt(more, RING / 24);
	cr_expect_gt(more, (RING - 256) / 24 - 64 / 24 - 8, "all older records were overwritten");
	cr_expect_eq(w->lost[2].full, 5000 - more);
	cr_expect_eq(slot->base + (slot->tail & slot->mask), (uintptr_t)outer.record);
	commit(outer, 0);
	cr_expect(world_hit(w, 2, &i, 8));
	cr_expect_eq(w->lost[0].overwritten, 1);
	cr_expect_eq(slot->abandoned, 0);
	cr_expect_eq(w->lost[1].overwritten, 5000);
}

/* As if time had passed since the reservation first blocked the ring. */
static void wait_for_stuck(struct dp_slot *slot)
{
	cr_assert_eq(slot->stuck_at, slot->tail + 1);
	slot->stuck_tsc -= DP_STUCK_TICKS;
}

Test(overwrite, an_abandoned_hit_does_not_stop_the_recorder_for_ever, .init = begin, .fini = end)
{
	struct dp_slot *slot = &w->slots[0];
	struct dp_reservation left;
	uint64_t i = 0, more = 0;
	struct seen s;

	w->desc[0].reserve = 512;
	cr_assert(world_hit(w, 1, &i, 8));
	left = world_reserve(w, 0); /* like siglongjmp() out of a handler */
	memset(left.record->payload, 0x5a, 400);
	for (i = 1; i <= 3000; i++)
		more += world_hit(w, 2, &i, 8);
	cr_expect_eq(w->lost[2].full, 3000 - more);
	wait_for_stuck(slot);
	for (i = more + 1; i <= 9000; i++)
		cr_assert(world_hit(w, 2, &i, 8));
	cr_expect_eq(slot->abandoned, 1);
	cr_expect(free_is_zero(slot));
	s = take_over(slot);
	cr_expect(!s.gap && !s.other_thread);
	cr_expect_eq(s.last[2], 9000);
	cr_expect_eq(s.n + w->lost[2].overwritten, 9000);
}

Test(overwrite, what_a_gone_thread_left_unfinished_is_skipped_at_once, .init = begin, .fini = end)
{
	struct dp_slot *slot = &w->slots[0];
	uint32_t real = world_set_tid(1000);
	uint64_t i = 0;

	cr_assert(world_hit(w, 1, &i, 8));
	cr_assert(world_reserve(w, 0).record);
	world_set_tid(1001); /* same TCB, another thread */
	for (i = 1; i <= 5000; i++)
		cr_assert(world_hit(w, 2, &i, 8));
	cr_expect_eq(slot->abandoned, 1);
	cr_expect_eq(world_lost(w), 0);
	cr_expect_eq(slot->tail_tid, 1001);
	world_set_tid(real);
}

/* The ring holds only the abandoned hit: no record follows it. */
Test(overwrite, a_ring_of_one_abandoned_hit_recovers, .init = begin, .fini = end)
{
	struct dp_slot *slot = &w->slots[0];
	uint64_t i = 0;

	cr_assert(world_hit(w, 1, &i, 8));
	slot->tail = slot->head = 0;
	memset((void *)(uintptr_t)slot->base, 0, RING);
	slot->limit = 0;
	w->desc[0].reserve = DP_RECORD_MAX;
	for (i = 0; i < RING / DP_RECORD_MAX; i++)
		cr_assert(world_reserve(w, 0).record);
	cr_expect(!world_hit(w, 1, &i, 8));
	wait_for_stuck(slot);
	cr_expect(world_hit(w, 1, &i, 8));
	cr_expect(free_is_zero(slot));
}

/* ---- hostile memory ----------------------------------------------------------------------------- */

/* The program may write anything over rings and slots: nothing outside of the ring may change, and no hit may hang. */
Test(overwrite, garbage_in_the_ring_stays_there, .init = begin, .fini = end)
{
	struct dp_slot *slot = &w->slots[0];
	uint8_t *room = mmap(NULL, 3 * RING, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t i = 0;

	mprotect(room, RING, PROT_NONE);
	mprotect(room + 2 * RING, RING, PROT_NONE);
	slot->base = (uintptr_t)room + RING;
	cr_assert(world_hit(w, 0, &i, 8));
	srand(3);
	for (i = 0; i < 200000; i++) {
		uint32_t at = 8 * ((uint32_t)rand() % (RING / 8));
		uint64_t junk = (uint64_t)rand() << (rand() % 40);
		if (i % 16 == 0)
			memcpy(room + RING + at, &junk, 8);
		if (i % 500 == 0)
			slot->head += (uint64_t)(rand() % 65) * 8 - 256;
		if (i % 700 == 0)
			slot->tail += (uint64_t)(rand() % 65) * 8 - 256;
		if (i % 900 == 0)
			slot->settled = slot->tail + (uint64_t)rand() % (2 * RING);
		if (slot->stuck_at)
			slot->stuck_tsc = dp_rdtsc() - DP_STUCK_TICKS * (uint64_t)(rand() % 3);
		slot->limit = 0;
		if (slot->head - slot->tail <= RING) {
			world_hit(w, (unsigned)i % WORLD_PROBES, &i, 8);
			cr_assert_leq(slot->head - slot->tail, RING);
		} else { /* only the tool repairs that */
			cr_assert_eq(dp_ring_overwrite(w->agent, slot, 64), false);
			slot->head = slot->tail;
		}
	}
	munmap(room, 3 * RING);
}

/* A seccomp filter that was installed after the attach and refuses the needed system call: the ring is then simply full. */
static int refused_by_filter(void)
{
	struct sock_filter code[] = {
	        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigprocmask, 0, 1),
	        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
	        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {4, code};
	uint64_t recorded = 0;

	w->agent->live = DP_LIVE; /* wiped by fork */
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		return 2;
	for (uint64_t i = 0; i < 5000; i++)
		recorded += world_hit(w, 1, &i, 8);
	return recorded && recorded < RING / 24 && w->lost[1].full == 5000 - recorded && !overwritten() ? 0 : 1;
}

Test(overwrite, without_signal_masks_a_full_ring_is_full, .init = begin, .fini = end)
{
	struct dp_agent saved = *w->agent;
	int status;
	pid_t child = fork();

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		memcpy(w->agent, &saved, sizeof(saved));
		_exit(refused_by_filter());
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", status);
}
