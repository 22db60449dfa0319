/* SPDX-License-Identifier: MIT */
/* Fork children that record in slots of their own. */
#include "tests/unit/agent/step.h"
#include "tests/unit/agent/world.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define RING 16384u

static struct dp_debug_ctx *w;

static void set_up(uint32_t nslots, bool on)
{
	w = world_create(nslots, RING, DP_ID_SELF);
	w->control->follow =
	        (struct dp_follow){.on = on, .identity = DP_ID_SELF, .tid_offset = world_tid_offset(), .unwind = 4711};
}

static void await(pid_t pid)
{
	int status = -1;

	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status 0x%x", status);
}

static pid_t in_child(int (*work)(void))
{
	pid_t pid = fork();

	if (!pid)
		_exit(work());
	return pid;
}

static void note_thread(const struct dp_record *record, void *data)
{
	if (record->probe == DP_RECORD_THREAD)
		*(uint64_t *)data = *(const uint64_t *)(const void *)record->payload;
}

static int hit_ten_times(void)
{
	return world_hits(w, 10) != 10;
}

Test(follow, child_takes_a_ring_of_its_own_and_names_itself)
{
	uint64_t named = 0;

	set_up(4, true);
	cr_assert_eq(world_hits(w, 3), 3);
	pid_t pid = in_child(hit_ten_times);
	await(pid);
	cr_assert_eq(world_hits(w, 3), 3);
	cr_expect_eq(world_drain(&w->slots[0], note_thread, &named), 6);
	cr_expect_eq(named, (uint64_t)gettid(), "the target itself");
	cr_expect_eq(w->slots[1].process, 1);
	cr_expect_eq(world_drain(&w->slots[1], note_thread, &named), 10);
	cr_expect_eq(named, dp_thread_word((uint32_t)pid, (uint32_t)pid));
	cr_expect_eq(w->control->follow.processes, 1);
	cr_expect_eq(world_lost(w), 0);
	world_destroy(w);
}

Test(follow, without_it_a_child_is_counted_and_silent)
{
	set_up(4, false);
	cr_assert_eq(world_hits(w, 3), 3);
	pid_t pid = fork();
	if (!pid)
		_exit(world_hits(w, 10) != 0 || w->agent->live || w->agent->pid);
	await(pid);
	cr_expect_eq(w->lost[0].forked, 10);
	cr_expect_eq(w->slots[1].state, DP_SLOT_FREE);
	cr_expect_eq(w->control->follow.joined, 0);
	world_destroy(w);
}

static int two_generations(void)
{
	int bad = world_hits(w, 4) != 4;
	pid_t pid = in_child(hit_ten_times);
	int status = -1;

	bad |= waitpid(pid, &status, 0) != pid || status;
	return bad | (world_hits(w, 4) != 4);
}

Test(follow, child_of_a_child_is_another_process)
{
	set_up(4, true);
	await(in_child(two_generations));
	cr_expect_eq(w->slots[0].process, 1);
	cr_expect_eq(w->slots[1].process, 2);
	cr_expect_neq(w->slots[0].pid, w->slots[1].pid);
	cr_expect_eq(world_drain(&w->slots[0], NULL, NULL), 8);
	cr_expect_eq(world_drain(&w->slots[1], NULL, NULL), 10);
	world_destroy(w);
}

/* A raw clone leaves the parent's id in the thread control block: key and id word of parent and child are then equal. */
static pid_t raw_fork(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

Test(follow, raw_clone_with_its_parents_id_word_does_not_write_to_its_parents_ring)
{
	uint64_t named = 0;

	set_up(4, true);
	cr_assert_eq(world_hits(w, 3), 3);
	pid_t pid = raw_fork();
	if (!pid)
		_exit(world_hits(w, 10) != 10 || w->agent->identity != DP_ID_TID);
	await(pid);
	cr_expect_eq(world_drain(&w->slots[0], NULL, NULL), 3);
	cr_expect_eq(world_drain(&w->slots[1], note_thread, &named), 10);
	cr_expect_eq(named, dp_thread_word((uint32_t)pid, (uint32_t)pid));
	world_destroy(w);
}

static void *hit_a_thousand_times(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < 1000; i++)
		if (!world_hit(w, 0, &i, 4))
			return w;
	return NULL;
}

static int threads_at_once(void)
{
	pthread_t thread[8];
	void *bad = NULL, *one;

	for (int i = 0; i < 8; i++)
		if (pthread_create(&thread[i], NULL, hit_a_thousand_times, NULL))
			return 2;
	for (int i = 0; i < 8; i++) {
		pthread_join(thread[i], &one);
		bad = bad ? bad : one;
	}
	return bad != NULL;
}

/* Their first hits join at the same time. */
Test(follow, threads_of_a_child_are_of_one_process)
{
	unsigned n = 0;

	w = world_create(16, 65536, DP_ID_SELF);
	w->control->follow = (struct dp_follow){.on = 1, .tid_offset = world_tid_offset()};
	await(in_child(threads_at_once));
	uint32_t process = w->slots[0].process;
	for (int i = 0; i < 16; i++) {
		n += world_drain(&w->slots[i], NULL, NULL);
		cr_expect(w->slots[i].state == DP_SLOT_FREE || w->slots[i].process == process);
	}
	cr_expect_eq(n, 8000);
	cr_expect_eq(w->control->follow.processes, 1);
	world_destroy(w);
}

Test(follow, slots_of_a_process_are_taken_by_others_only_after_its_end)
{
	set_up(1, true);
	await(in_child(hit_ten_times));
	cr_assert_eq(world_drain(&w->slots[0], NULL, NULL), 10);
	*dp_slot_word(&w->slots[0]) = dp_slot_pack(0, DP_SLOT_DEAD);
	w->control->slots_freed++;
	cr_expect_eq(world_hits(w, 1), 0, "the process may live on");
	cr_expect_eq(w->lost[0].no_slot, 1);
	w->slots[0].process = DP_PROCESS_NONE;
	w->control->slots_freed++;
	cr_expect_eq(world_hits(w, 1), 1);
	cr_expect_eq(w->slots[0].process, 0);
	world_destroy(w);
}

Test(follow, when_it_is_over_a_full_ring_counts)
{
	set_up(2, true);
	pid_t pid = fork();
	if (!pid) {
		int bad = world_hits(w, 1) != 1;
		w->control->follow.on = 0;
		_exit(bad || world_hits(w, 1000) > RING / 24);
	}
	await(pid);
	cr_expect_gt(w->lost[0].forked, 0);
	cr_expect_eq(w->lost[0].full, 0);
	world_destroy(w);
}

static int hit_in_a_storm(void)
{
	pthread_t self = pthread_self(), storm;
	unsigned n = 0;

	if (pthread_create(&storm, NULL, world_storm, &self))
		return 2;
	for (unsigned i = 0; i < 200; i++)
		n += world_hit(w, 0, &i, 4);
	world_storm_over = 1;
	pthread_join(storm, NULL);
	return n != 200;
}

static volatile unsigned handled;

static void on_usr1(int sig)
{
	const unsigned i = handled;

	(void)sig;
	if (i < 200)
		handled += world_hit(w, 1, &i, 4);
}

Test(follow, signal_handlers_hit_while_a_child_joins)
{
	struct sigaction action = {.sa_handler = on_usr1};

	sigaction(SIGUSR1, &action, NULL);
	for (int round = 0; round < 50; round++) {
		set_up(4, true);
		await(in_child(hit_in_a_storm));
		cr_assert_eq(w->control->follow.processes, 1);
		cr_assert_eq(world_lost(w), 0);
		world_destroy(w);
	}
}

/* ---- a signal handler forks in the middle ------------------------------------------------------------------------------------
 */

static void acquire(void)
{
	const struct dp_reservation r = dp_acquire(&w->desc[0]);

	if (r.record)
		dp_ring_commit(r.record, w->desc[0].reserve, 0);
}

static bool table_has_foreign_slots(void)
{
	for (unsigned i = 0; i < DP_TABLE_SIZE; i++) {
		const struct dp_slot *slot = (const struct dp_slot *)(uintptr_t)w->agent->table[i].slot;

		if (slot && w->agent->table[i].key && slot->process != w->agent->process)
			return true;
	}
	return false;
}

static int after_the_fork(void)
{
	int bad = table_has_foreign_slots();

	bad |= (world_hits(w, 3) != 3) << 1;
	return bad | table_has_foreign_slots() << 2 | (w->agent->process != 1) << 3;
}

/* The thread's first hit. Its process and its child both go on, and from then on each uses slots of its own. */
Test(follow, handler_forks_after_any_instruction_of_a_first_hit)
{
	int status = -1;
	unsigned n = 0;

	for (bool more = true; more;) {
		pid_t child = -1;
		set_up(6, true);
		more = step_fork(++n, acquire, &child);
		if (!child)
			_exit(after_the_fork());
		if (more) {
			cr_assert_eq(waitpid(child, &status, 0), child);
			cr_assert_eq(status, 0, "at instruction %u: status 0x%x", n, status);
			cr_assert_eq(world_hits(w, 3), 3);
			cr_assert(!table_has_foreign_slots(), "at instruction %u", n);
		}
		world_destroy(w);
	}
	cr_expect_gt(n, 100);
}
