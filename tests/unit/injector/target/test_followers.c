/* SPDX-License-Identifier: MIT */
/* Whose slots and cells others may have: those of processes that are certainly gone. */
#include "injector/target/events/followers.c"

#include <criterion/criterion.h>
#include <sys/mman.h>

#define GONE 0x3fffffff /* no process has this id */

static struct dp_target t;
static struct dp_followers f;
static struct follower item[2];

/* Processes 1 to 8 have joined before the inspection, which found this process as number 3. */
static void inspected(void)
{
	t = (struct dp_target){.followers = &f};
	f = (struct dp_followers){.item = item, .n = 1, .joined = 8};
	item[0] = (struct follower){.pid = getpid(), .process = 3};
}

static enum dp_owner_state state(uint32_t process, pid_t pid, pid_t tid)
{
	return dp_followers_state(&t, &(struct dp_slot_owner){.process = process, .pid = pid, .tid = tid});
}

Test(followers, process_that_is_not_found_has_ended, .init = inspected)
{
	cr_expect_eq(state(4, GONE, GONE), DP_OWNER_PROCESS_ENDED);
	cr_expect_eq(state(4, 0, 0), DP_OWNER_PROCESS_ENDED);
	cr_expect_eq(state(8, GONE, GONE), DP_OWNER_PROCESS_ENDED);
}

Test(followers, process_that_joined_after_the_inspection_lives, .init = inspected)
{
	cr_expect_eq(state(9, GONE, GONE), DP_OWNER_LIVES);
	cr_expect_eq(state(9, 0, 0), DP_OWNER_LIVES);
}

Test(followers, thread_of_a_process_that_lives, .init = inspected)
{
	cr_expect_eq(state(3, getpid(), gettid()), DP_OWNER_LIVES);
	cr_expect_eq(state(3, getpid(), GONE), DP_OWNER_ENDED);
	cr_expect_eq(state(3, GONE, GONE), DP_OWNER_LIVES, "ids of another namespace say nothing");
}

Test(followers, process_that_may_not_be_read_lives, .init = inspected)
{
	f.n = 2;
	item[1] = (struct follower){.pid = getpid(), .unreadable = true};
	cr_expect_eq(state(4, getpid(), GONE), DP_OWNER_LIVES);
	cr_expect_eq(state(4, GONE, GONE), DP_OWNER_PROCESS_ENDED);
	cr_expect_eq(state(4, 0, 0), DP_OWNER_LIVES, "it may be that one");
}

Test(followers, after_a_failed_inspection_all_live, .init = inspected)
{
	f.incomplete = true;
	cr_expect_eq(state(4, GONE, GONE), DP_OWNER_LIVES);
}

Test(followers, the_target_itself, .init = inspected)
{
	cr_expect_eq(state(0, 0, 0), DP_OWNER_LIVES);
	cr_expect_eq(state(0, 0, GONE), DP_OWNER_ENDED);
	t.gone = true;
	cr_expect_eq(state(0, 0, 0), DP_OWNER_PROCESS_ENDED);
}

/* ---- cells ----------------------------------------------------------------------------------------------------------------- */

Test(followers, cells_of_an_ended_process_are_free_for_others, .init = inspected)
{
	uint64_t size;
	t.nprobes = 1;
	t.cells = (struct dp_cells_want){.words = 1, .pairs = true};
	t.limits.address.most = t.limits.data.most = UINT64_MAX;
	t.runtime.answers = dp_aggs_layout(&t, &size);
	t.runtime.answers.head = 1;
	const struct dp_data_layout l = dp_data_layout(&t);
	t.data = mmap(NULL, l.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	cr_assert_neq(t.data, MAP_FAILED);
	struct dp_aggs_head *head = (void *)(t.data + l.cells);
	head->used = 4;
	head->owner[1] = (uint64_t)GONE << 32 | 4;
	head->owner[2] = (uint64_t)(uint32_t)getpid() << 32 | 3;
	head->owner[3] = (uint64_t)GONE << 32 | 9;
	dp_aggs_reap(&t);
	cr_expect_eq(head->free[0], 2);
	cr_expect_eq(head->owner[0], 0);
	cr_expect_eq(head->owner[1], 0);
	cr_expect_neq(head->owner[2], 0);
	cr_expect_neq(head->owner[3], 0);
	dp_aggs_reap(&t);
	cr_expect_eq(head->free[0], 2);
	munmap(t.data, l.size);
}
