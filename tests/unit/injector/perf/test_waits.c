/* SPDX-License-Identifier: MIT */
#include "injector/perf/waits.h"

#include <criterion/criterion.h>
#include <stdlib.h>

struct seen {
	struct dp_wait wait[16];
	uint64_t mark[16]; /* of its stack; 0: none */
	size_t n;
};

static void see(const struct dp_wait *wait, void *data)
{
	struct seen *s = data;
	s->mark[s->n] = wait->stack ? wait->stack->pc[0] : 0;
	s->wait[s->n++] = *wait;
}

static struct dp_waits *waits;
static struct seen seen;

static void begin(void)
{
	seen = (struct seen){0};
	cr_assert_null(dp_waits_create(&waits));
	dp_waits_begin(waits, 100);
}

static void end(void)
{
	dp_waits_destroy(waits);
}

static void add(enum dp_switch_kind kind, pid_t tid, uint64_t ns)
{
	dp_waits_add(waits, &(struct dp_switch){.kind = kind, .tid = tid, .ns = ns});
}

static void stack(pid_t tid, uint64_t ns, uint64_t mark)
{
	struct dp_wait_stack *s = malloc(sizeof(*s) + sizeof(mark));
	*s = (struct dp_wait_stack){.n = 1};
	s->pc[0] = mark;
	dp_waits_add(waits, &(struct dp_switch){.kind = DP_SWITCH_STACK, .tid = tid, .ns = ns, .stack = s});
}

static struct dp_waits_stats settle(uint64_t ns)
{
	struct dp_waits_stats stats;
	dp_waits_settle(waits, ns, see, &seen);
	dp_waits_stats(waits, &stats);
	return stats;
}

static void expect(size_t i, uint64_t from, uint64_t to, uint64_t mark)
{
	cr_assert_gt(seen.n, i);
	cr_assert_eq(seen.wait[i].from_ns, from);
	cr_assert_eq(seen.wait[i].to_ns, to);
	cr_assert_eq(seen.mark[i], mark);
}

TestSuite(waits, .init = begin, .fini = end);

Test(waits, rings_are_read_in_any_order_and_each_in_counts_once)
{
	add(DP_SWITCH_IN, 1, 300);
	add(DP_SWITCH_PREEMPTED, 1, 402);
	add(DP_SWITCH_IN, 1, 500);
	add(DP_SWITCH_IN, 1, 501);
	add(DP_SWITCH_OUT, 1, 202);
	stack(1, 400, 8);
	stack(1, 200, 7);
	settle(1000);
	cr_assert_eq(seen.n, 2);
	expect(0, 202, 300, 7);
	expect(1, 402, 500, 8);
	cr_assert(!seen.wait[0].preempted && seen.wait[1].preempted);
}

Test(waits, later_records_wait_for_the_others)
{
	stack(1, 200, 7);
	add(DP_SWITCH_OUT, 1, 202);
	add(DP_SWITCH_IN, 1, 400);
	settle(300);
	cr_assert_eq(seen.n, 0);
	settle(400);
	expect(0, 202, 400, 7);
}

Test(waits, a_lost_sample_is_a_wait_without_a_stack)
{
	stack(1, 200, 7);
	add(DP_SWITCH_OUT, 1, 202);
	add(DP_SWITCH_IN, 1, 300);
	add(DP_SWITCH_OUT, 1, 402);
	add(DP_SWITCH_IN, 1, 500);
	settle(1000);
	expect(1, 402, 500, 0);
}

Test(waits, nothing_is_paired_across_lost_records)
{
	stack(1, 200, 7);
	add(DP_SWITCH_OUT, 1, 202);
	dp_waits_add(waits, &(struct dp_switch){.kind = DP_SWITCH_LOST, .from_ns = 250, .ns = 600});
	add(DP_SWITCH_IN, 1, 500); /* of another wait: in and out were lost between */
	cr_assert_eq(settle(500).broken, 1);
	cr_assert_eq(seen.n, 0);
	stack(1, 550, 8);
	add(DP_SWITCH_OUT, 1, 650); /* perhaps a later one */
	add(DP_SWITCH_IN, 1, 700);
	settle(1000);
	cr_assert_eq(seen.n, 1);
	expect(0, 650, 700, 0);
}

Test(waits, a_lost_in_or_out_makes_no_wait)
{
	stack(1, 200, 7);
	add(DP_SWITCH_OUT, 1, 202);
	stack(1, 300, 8); /* it has run meanwhile */
	add(DP_SWITCH_IN, 1, 400);
	cr_assert_eq(settle(1000).broken, 2);
	cr_assert_eq(seen.n, 0);
}

Test(waits, what_began_before_is_early_and_a_new_thread_is_not)
{
	add(DP_SWITCH_IN, 1, 150);
	add(DP_SWITCH_BORN, 2, 160);
	add(DP_SWITCH_IN, 2, 170);
	const struct dp_waits_stats s = settle(1000);
	cr_assert_eq(s.early, 1);
	cr_assert_eq(s.early_ns, 50);
	cr_assert_eq(seen.n, 0);
	cr_assert(dp_waits_knows(waits, 1) && !dp_waits_knows(waits, 3));
}

Test(waits, a_thread_that_ends_or_whose_number_is_used_again_has_no_wait)
{
	stack(1, 200, 7);
	add(DP_SWITCH_OUT, 1, 202);
	add(DP_SWITCH_ENDED, 1, 300);
	add(DP_SWITCH_IN, 1, 350);
	add(DP_SWITCH_OUT, 2, 202);
	add(DP_SWITCH_BORN, 2, 400);
	add(DP_SWITCH_IN, 2, 410);
	settle(1000);
	cr_assert_eq(seen.n, 0);
}

Test(waits, what_lasts_counts_up_to_the_end_and_what_comes_later_does_not)
{
	stack(1, 200, 7);
	add(DP_SWITCH_OUT, 1, 202);
	add(DP_SWITCH_IN, 1, 900);
	add(DP_SWITCH_OUT, 2, 850);
	dp_waits_end(waits, 800, see, &seen);
	cr_assert_eq(seen.n, 1);
	expect(0, 202, 800, 7);
	cr_assert(seen.wait[0].open);
}
