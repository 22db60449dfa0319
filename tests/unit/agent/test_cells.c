/* SPDX-License-Identifier: MIT */
/* Which block of cells a hit counts in: never one of another process's. */
#include "agent/aggregate.h"
#include "tests/unit/agent/step.h"
#include "tests/unit/agent/world.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK  256u
#define BLOCKS 64u

static struct dp_debug_ctx *w;
static struct dp_aggs_head *head;

static void set_up(enum dp_identity identity, bool on, uint32_t nblocks)
{
	const size_t size = DP_AGGS_HEAD + (nblocks + 1) * BLOCK;

	w = world_create(1, 16384, identity);
	w->control->follow = (struct dp_follow){.on = on, .identity = identity, .tid_offset = world_tid_offset()};
	head = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(head, MAP_FAILED);
	w->control->answers = (struct dp_aggs){.head = (uintptr_t)head, .size = BLOCK, .nblocks = nblocks};
}

/* The number of the block; its number + 1000 if it is shared, -1 if there is none. */
static int block(void)
{
	const struct dp_cells cells = dp_agg_cells(&w->desc[0]);
	const int n = (int)((cells.at - (uintptr_t)head - DP_AGGS_HEAD) / BLOCK);

	return cells.at ? n + (cells.shared ? 1000 : 0) : -1;
}

static int in_child(int (*work)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		_exit(work());
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status), "status 0x%x", status);
	return WEXITSTATUS(status);
}

static int block_and_owner(void)
{
	const int n = block();

	return n < 0 || n != block() || head->owner[n] != ((uint64_t)getpid() << 32 | w->agent->process) ? 255 : n;
}

static int child_of_child(void)
{
	return block_and_owner() == 1 && in_child(block_and_owner) == 2 && block() == 1 ? 0 : 1;
}

Test(cells, each_process_has_its_own)
{
	set_up(DP_ID_SELF, true, 8);
	cr_expect_eq(block(), 0);
	cr_expect_eq(in_child(child_of_child), 0);
	cr_expect_eq(in_child(block_and_owner), 3);
	cr_expect_eq(block(), 0);
	cr_expect_eq(head->owner[0], 0);
	cr_expect_eq(w->control->follow.processes, 3);
	cr_expect_eq(world_lost(w), 0);
}

static int none(void)
{
	return block() != -1;
}

Test(cells, without_follow_a_child_is_counted_as_lost)
{
	set_up(DP_ID_SELF, false, 8);
	cr_expect_eq(in_child(none), 0);
	cr_expect_eq(w->lost[0].forked, 1);
	cr_expect_eq(head->used, 0);
}

/* It comes first in a child; its descriptor has no counters. */
static int at_an_entry(void)
{
	const struct dp_probe_desc entry = {.agent = w->desc[0].agent, .event = (uintptr_t)w->control, .probe = DP_NO_PROBE};

	return !dp_agg_cells(&entry).at || w->agent->process != 1;
}

Test(cells, child_joins_at_the_entry_of_a_call)
{
	set_up(DP_ID_SELF, true, 8);
	cr_expect_eq(in_child(at_an_entry), 0);
	cr_expect_eq(world_lost(w), 0);
}

Test(cells, blocks_that_were_left_come_first_and_when_all_are_used_the_shared_one)
{
	set_up(DP_ID_SELF, true, 2);
	cr_expect_eq(in_child(block_and_owner), 0);
	head->owner[0] = 0;
	head->free[0] = 1;
	cr_expect_eq(in_child(block_and_owner), 0);
	cr_expect_eq(head->free[0], 0);
	cr_expect_eq(in_child(block_and_owner), 1);
	cr_expect_eq(block(), 1002);
	head->free[0] = UINT64_C(1) << 50;
	cr_expect_eq(block(), 1002, "there is no such block");
}

static int shared(void)
{
	return block() != 1008;
}

Test(cells, threads_that_cannot_be_told_apart_share)
{
	set_up(DP_ID_TID, true, 8);
	cr_expect_eq(block(), 1008);
	cr_expect_eq(in_child(shared), 0);
	cr_expect_eq(w->control->follow.processes, 1);
}

static void count(void)
{
	block();
}

/* The keys of the first blocks: of this process's own only. */
static bool is_named(int own)
{
	bool good = true;

	for (int n = 0; n < (int)DP_AGG_FIRST; n++)
		good = good && !w->agent->answer_first[n] == (n != own);
	return good;
}

static int named(void)
{
	const int own = block();

	return own < 0 || !is_named(own);
}

Test(cells, the_first_blocks_are_known_by_their_keys)
{
	set_up(DP_ID_SELF, true, 8);
	for (unsigned i = 0; i < DP_AGG_FIRST; i++)
		cr_expect_eq(in_child(named), 0);
	cr_expect_eq(block(), (int)DP_AGG_FIRST);
	cr_expect(is_named(-1));
}

static int after_the_fork(void)
{
	const int own = block();

	return own < 0 || own != block() || !w->agent->process || !is_named(own) ||
	       head->owner[own] != ((uint64_t)getpid() << 32 | w->agent->process);
}

/* Wherever a signal handler forks, parent and child have blocks of their own from then on. */
Test(cells, handler_forks_after_any_instruction)
{
	int status = -1;
	pid_t child = -1;
	unsigned n = 0;

	set_up(DP_ID_SELF, true, BLOCKS);
	do {
		memset(w->agent->answer_key, 0, sizeof(w->agent->answer_key)); /* the search finds none */
		memset(w->agent->answer_block, 0, sizeof(w->agent->answer_block));
		memset(w->agent->answer_first, 0, sizeof(w->agent->answer_first));
		head->used = 0;
		const bool more = step_fork(++n, count, &child);
		if (!child)
			_exit(after_the_fork());
		if (!more)
			break;
		cr_assert_eq(waitpid(child, &status, 0), child);
		cr_assert_eq(status, 0, "at instruction %u: status 0x%x", n, status);
		cr_assert_eq(head->owner[block()], 0, "at instruction %u", n);
	} while (true);
	cr_expect_gt(n, 50);
	cr_expect_eq(world_lost(w), 0);
}

/* Of the numbers at each power of two, and at each bound. */
Test(cells, decimal_steps_by_the_highest_bit)
{
	const struct dp_decimal *d = &dp_agent_decimal;
	unsigned bucket = 0;

	for (uint64_t n = 1; n < UINT64_C(1) << 62; n *= 10)
		for (uint64_t k = 1; k <= 5 && n * k<UINT64_C(1) << 63; k += k> 1 ? 3 : 1) {
			const uint64_t bound = n * k, i = 63 - (uint64_t)__builtin_clzll(bound);

			cr_expect_eq(d->bound[i], bound);
			cr_expect_eq(d->below[i], bucket++, "%lu", bound);
		}
	for (unsigned i = 1; i < 63; i++) {
		cr_expect_eq(d->below[i], d->below[i - 1] + (d->bound[i - 1] < UINT64_MAX), "%u", i);
		cr_expect(d->bound[i] == UINT64_MAX || d->bound[i] >> i == 1, "%u", i);
	}
	cr_expect_eq(d->below[63] + 1u, bucket + 1, "all that is below 0");
	cr_expect_eq(d->bound[63], 0);
}
