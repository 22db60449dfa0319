/* SPDX-License-Identifier: MIT */
/* Which entries and returns are one call, where some are missing. */
#include "output/tree/call_tree.h"

#include <criterion/criterion.h>

enum { F, G, H };
static const struct dp_call_function functions[] = {{"f", true}, {"g", false}, {"h", false}};
static struct dp_call_tree *tree;
static struct dp_call_counts counts;
#define TOP UINT64_C(0x7f0000100000)

static void begin(void)
{
	struct dp_error *err = dp_call_tree_create(functions, 3, &tree);
	cr_assert_null(err);
}

static void step(pid_t tid, size_t function, bool enters, uint64_t sp, uint64_t ns)
{
	dp_call_tree_step(
	        tree, &(struct dp_call_step){.pid = 1, .tid = tid, .function = function, .enters = enters, .sp = sp, .ns = ns});
}

static const struct dp_call_node *node(size_t a, size_t b, size_t depth)
{
	const struct dp_call_node *n;
	const struct dp_call_function *f;
	size_t nfunctions;
	const size_t want[] = {a, b};
	uint32_t at = 0;
	dp_call_tree_nodes(tree, &n, &f, &nfunctions);
	for (size_t i = 0; i < depth; i++) {
		at = n[at].child;
		while (at && n[at].function != want[i])
			at = n[at].next;
		if (!at)
			return NULL;
	}
	return &n[at];
}

static void end(void)
{
	dp_call_tree_counts(tree, &counts);
	tree = dp_call_tree_destroy(tree);
}

Test(call_tree, times_are_total_and_below)
{
	begin();
	step(1, F, true, TOP, 100);
	step(1, G, true, TOP - 64, 110);
	step(1, G, false, TOP - 64, 130);
	step(1, F, false, TOP, 200);
	cr_expect_eq(node(F, 0, 1)->total, 100);
	cr_expect_eq(node(F, 0, 1)->below, 20);
	cr_expect_eq(node(F, G, 2)->total, 20);
	end();
	cr_expect_eq(counts.open + counts.left, 0);
}

Test(call_tree, threads_are_apart_and_only_calls_below_a_root_count)
{
	begin();
	step(2, G, true, TOP - 64, 50);
	step(1, F, true, TOP, 100);
	step(2, G, false, TOP - 64, 120);
	step(1, F, false, TOP, 130);
	cr_expect_null(node(G, 0, 1));
	cr_expect_null(node(F, G, 2));
	cr_expect_eq(node(F, 0, 1)->total, 30);
	end();
}

Test(call_tree, a_longjmp_ends_what_it_leaves)
{
	begin();
	step(1, F, true, TOP, 100);
	step(1, G, true, TOP - 64, 110);
	step(1, H, true, TOP - 128, 115); /* longjmp back to f */
	step(1, G, true, TOP - 64, 120);
	step(1, G, false, TOP - 64, 125);
	step(1, F, false, TOP, 130);
	cr_expect_eq(node(F, G, 2)->calls, 2);
	cr_expect_eq(node(F, G, 2)->total, 15);
	cr_expect_eq(node(F, 0, 1)->total, 30);
	end();
	cr_expect_eq(counts.left, 2);
}

Test(call_tree, a_return_through_frames_ends_them)
{
	begin();
	step(1, F, true, TOP, 100);
	step(1, G, true, TOP - 64, 110);
	step(1, F, false, TOP, 130);
	cr_expect_eq(node(F, G, 2)->total, 20);
	end();
	cr_expect_eq(counts.left, 1);
	cr_expect_eq(counts.open, 0);
}

static void jump(pid_t tid, size_t function, uint64_t sp, uint64_t ns)
{
	dp_call_tree_step(tree,
	                  &(struct dp_call_step){.pid = 1, .tid = tid, .function = function, .tails = true, .sp = sp, .ns = ns});
}

Test(call_tree, a_tail_call_is_below_the_function_that_jumps)
{
	begin();
	step(1, F, true, TOP, 100);
	jump(1, F, TOP, 110);
	step(1, G, true, TOP, 112);
	step(1, G, false, TOP, 120);
	step(1, F, true, TOP, 200);
	step(1, F, false, TOP, 201);
	cr_expect_eq(node(F, G, 2)->total, 8);
	cr_expect_eq(node(F, 0, 1)->total, 21);
	end();
	cr_expect_eq(counts.left, 0);
}

Test(call_tree, a_tail_call_of_a_function_without_probe_ends_at_the_jump)
{
	begin();
	step(1, F, true, TOP, 100);
	jump(1, F, TOP, 110);
	step(1, F, true, TOP + 64, 200);
	step(1, F, false, TOP + 64, 205);
	cr_expect_eq(node(F, 0, 1)->total, 15);
	cr_expect_eq(node(F, 0, 1)->calls, 2);
	end();
	cr_expect_eq(counts.left, 0);
}

Test(call_tree, another_stack_leaves_nothing)
{
	begin();
	step(1, F, true, TOP, 100);
	step(1, G, true, TOP + (UINT64_C(1) << 30), 110); /* a signal's stack, or a coroutine's */
	step(1, G, false, TOP + (UINT64_C(1) << 30), 115);
	step(1, F, false, TOP, 130);
	cr_expect_eq(node(F, G, 2)->total, 5);
	cr_expect_eq(node(F, 0, 1)->total, 30);
	end();
	cr_expect_eq(counts.left, 0);
}

Test(call_tree, after_a_gap_nothing_is_in_progress)
{
	begin();
	step(1, F, true, TOP, 100);
	step(1, G, true, TOP - 64, 110);
	dp_call_tree_gap(tree);
	step(1, G, false, TOP - 64, 900);
	step(1, F, false, TOP, 1000);
	cr_expect_eq(node(F, 0, 1)->total, 0);
	end();
	cr_expect_eq(counts.dropped, 2);
}

Test(call_tree, depth_is_bounded)
{
	begin();
	for (uint64_t i = 0; i < 5000; i++)
		step(1, F, true, TOP - 64 * i, i);
	for (uint64_t i = 5000; i-- > 0;)
		step(1, F, false, TOP - 64 * i, 10000 - i);
	cr_expect_eq(node(F, 0, 1)->total, 10000);
	end();
	cr_expect(counts.full);
	cr_expect_eq(counts.open, 0);
}
