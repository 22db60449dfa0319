/* SPDX-License-Identifier: MIT */
/*
 * Guarantees of a plan: the site's bytes lead to the stub, and every other instruction is unchanged. The test applies all
 * plans to a copy of libc's code and follows the jumps, with much and with little free address space.
 */
#include "helper_plans.h"
#include "helper_text.h"
#include "helper_world.h"

#include "trampoline/arch/x86_64/decode/decode.h"
#include "trampoline/space/space.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define SITES 1500

struct batch {
	struct helper_module libc;
	struct world w;
	size_t n; /* planned probes */
};

static void add_random_site(struct batch *b, uint64_t *seed)
{
	struct dp_plan plan;
	b->w.request.site = helper_random_insn(&b->libc, seed);
	if (!helper_function(&b->libc, b->w.request.site))
		b->libc.text.function = b->libc.text.size = 0;
	struct dp_error *err = dp_planner_add(b->w.planner, &b->w.request, &plan);
	b->n += !err;
	dp_error_destroy(err);
}

static void check_batch(struct batch *b)
{
	const size_t asked = helper_check_plans(&b->w, &b->libc);
	/* Plans do not tell evicted instructions from hooks. */
	cr_assert(asked == b->n || (b->w.request.hook && asked > b->n), "%zu plans of probes, %zu placed", asked, b->n);
}

Test(plan, random_instructions_of_libc_lead_to_their_stub_and_leave_neighbours_alone)
{
	static struct batch b;
	uint64_t seed = 88172645463325252u;
	helper_libc(&b.libc);
	world_init(&b.w, &b.libc);
	for (int i = 0; i < SITES; i++)
		add_random_site(&b, &seed);
	cr_expect(b.n > SITES * 95 / 100, "only %zu of %d placed", b.n, SITES);
	check_batch(&b);
	world_fini(&b.w);
}

/* Three of four 16 MiB ranges are taken: fewer sites fit, but those are correct. */
Test(plan, little_free_space_costs_sites_but_not_correctness)
{
	static struct batch b;
	uint64_t seed = 2463534242u;
	const uint64_t step = 0x1000000;
	helper_libc(&b.libc);
	world_init(&b.w, &b.libc);
	uint64_t lo = (b.libc.code & ~(step - 1)) - (UINT64_C(1) << 31);
	for (uint64_t at = lo; at < lo + (UINT64_C(1) << 32); at += step)
		if (helper_random(&seed) % 4)
			cr_assert_null(dp_space_reserve(b.w.space, at, at + step));
	for (int i = 0; i < SITES; i++)
		add_random_site(&b, &seed);
	cr_expect(b.n > SITES / 2, "only %zu of %d placed", b.n, SITES);
	check_batch(&b);
	world_fini(&b.w);
}

/* A hook has no fields and no probe; its plan keeps the same guarantees. */
Test(plan, hooks_and_gates_are_placed_like_probes)
{
	static struct batch b;
	uint64_t seed = 99;
	helper_libc(&b.libc);
	world_init(&b.w, &b.libc);
	b.w.request.fields = NULL;
	b.w.request.probe = DP_NO_PROBE;
	b.w.request.hook = UINT64_C(0x7e0000001000);
	for (int i = 0; i < 100; i++)
		add_random_site(&b, &seed);
	b.w.request.gate[0] = UINT64_C(0x7e0000002000);
	for (int i = 0; i < 100; i++)
		add_random_site(&b, &seed);
	cr_expect(b.n > 190, "only %zu of 200 placed", b.n);
	check_batch(&b);
	world_fini(&b.w);
}

Test(plan, extents_are_whole_pages_ascending_and_merged)
{
	static struct batch b;
	uint64_t seed = 777;
	const struct dp_extent *extent;
	helper_libc(&b.libc);
	world_init(&b.w, &b.libc);
	for (int i = 0; i < 300; i++)
		add_random_site(&b, &seed);
	size_t n = dp_planner_extents(b.w.planner, &extent);
	cr_assert_gt(n, 1);
	for (size_t i = 0; i < n; i++) {
		cr_expect(extent[i].addr % DP_PAGE == 0 && extent[i].n % DP_PAGE == 0 && extent[i].n);
		cr_expect(!i || extent[i].addr > extent[i - 1].addr + extent[i - 1].n);
		cr_expect(!dp_space_is_free(b.w.space, extent[i].addr, extent[i].addr + extent[i].n));
	}
	const struct dp_plan *plan;
	size_t puns = 0;
	for (size_t i = dp_planner_plans(b.w.planner, &plan); i-- > 0;)
		puns += plan[i].springboard != 0;
	cr_expect_leq(n, puns * 9 / 10, "springboards share pages: %zu extents for %zu", n, puns);
	world_fini(&b.w);
}

static void only_room_is(struct dp_space *space, uint64_t start, uint64_t end)
{
	cr_assert_null(dp_space_reserve(space, 0, start));
	cr_assert_null(dp_space_reserve(space, end, UINT64_MAX));
}

static enum dp_tag add(struct world *w, uint64_t site, struct dp_plan *plan)
{
	w->request.site = site;
	struct dp_error *err = dp_planner_add(w->planner, &w->request, plan);
	enum dp_tag tag = err ? err->tag : DP_TAG_COUNT;
	dp_error_destroy(err);
	return tag;
}

#define AT UINT64_C(0x555555555000)

/* xor %eax,%eax, whose pun has no room; then bytes for windows; ud2; mov $1,%eax; nops */
static const uint8_t code[] = {0x31, 0xc0, 0x89, 0xd1, 0x01, 0xc1, 0x0f, 0x0b, 0xb8, 1, 0, 0, 0, 0x90, 0x90, 0x90, 0xc3};

Test(plan, refusal_leaves_nothing_behind)
{
	struct helper_module m;
	struct world w;
	struct dp_plan plan;
	const struct dp_extent *extent;
	const uint64_t room = AT + 0x10000;
	helper_code(&m, AT, code, sizeof(code));
	world_init(&w, &m);
	only_room_is(w.space, room, room + 8 * DP_PAGE);
	w.request.tactics = 1u << DP_TACTIC_PUN;
	cr_expect_eq(add(&w, AT, &plan), DP_TAG_NO_SPACE);
	w.request.tactics = 1u << DP_TACTIC_JUMP;
	cr_expect_eq(add(&w, AT, &plan), DP_TAG_TOO_SHORT);
	cr_expect_eq(add(&w, AT + 6, &plan), DP_TAG_UNRELOCATABLE);
	cr_expect_eq(add(&w, AT + 0x1000, &plan), DP_TAG_NOT_CODE);
	cr_expect_eq(dp_planner_extents(w.planner, &extent), 0);
	cr_expect(dp_space_is_free(w.space, room, room + 8 * DP_PAGE));
	world_fini(&w);
}

Test(plan, window_is_used_when_the_pun_finds_no_room)
{
	struct helper_module m;
	struct world w;
	struct dp_plan plan;
	helper_code(&m, AT, code, sizeof(code));
	world_init(&w, &m);
	only_room_is(w.space, AT + 0x10000, AT + 0x18000);
	cr_assert_eq(add(&w, AT, &plan), DP_TAG_COUNT);
	cr_expect_eq(plan.tactic, DP_TACTIC_WINDOW);
	cr_expect_eq(plan.displaced, 6);
	cr_expect_eq(plan.len, 5);
	cr_expect_eq(plan.ninterior, 2);
	cr_expect_eq(plan.springboard, 0);
	world_fini(&w);
}

/* pop %rbx, whose pun uses the bytes of the jump after it as its tail; mov $1,%eax; ret */
static const uint8_t leaned_on[] = {0x5b, 0xb8, 1, 0, 0, 0, 0xc3, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90};

Test(plan, second_probe_at_a_site_whose_jump_another_relies_upon)
{
	struct helper_module m;
	struct world w;
	struct dp_plan plan;
	helper_code(&m, AT, leaned_on, sizeof(leaned_on));
	world_init(&w, &m);
	cr_assert_eq(add(&w, AT + 1, &plan), DP_TAG_COUNT);
	cr_assert_eq(plan.tactic, DP_TACTIC_JUMP);
	cr_assert_eq(plan.springboard, 0, "the jump leads to the stub itself");
	cr_assert_eq(add(&w, AT, &plan), DP_TAG_COUNT);
	cr_assert_eq(plan.tactic, DP_TACTIC_PUN);
	cr_assert_eq(add(&w, AT + 1, &plan), DP_TAG_COUNT);
	cr_assert_eq(add(&w, AT + 1, &plan), DP_TAG_COUNT);
	cr_expect_eq(helper_check_plans(&w, &m), 4);
	world_fini(&w);
}

Test(plan, DP_OVERLAP_between_probes)
{
	struct helper_module m;
	struct world w;
	struct dp_plan plan;
	helper_code(&m, AT, code, sizeof(code));
	world_init(&w, &m);
	w.request.tactics = 1u << DP_TACTIC_JUMP | 1u << DP_TACTIC_WINDOW;
	cr_assert_eq(add(&w, AT, &plan), DP_TAG_COUNT);
	cr_expect_eq(add(&w, AT + 2, &plan), DP_TAG_OVERLAP, "a head inside a window");
	cr_expect_eq(add(&w, AT + 8, &plan), DP_TAG_COUNT, "after it");
	world_fini(&w);
}

/*
 * A probe that is already installed in the target is not moved: its bytes must not change, and no jump may rely on the bytes that
 * it changed.
 */
Test(plan, DP_OVERLAP_with_what_stands)
{
	struct helper_module m;
	struct world w;
	struct dp_plan plan;
	helper_code(&m, AT, code, sizeof(code));
	world_init(&w, &m);
	w.request.tactics = 1u << DP_TACTIC_PUN;
	cr_assert_null(dp_planner_occupy(w.planner, AT + 2, 2, 7));
	cr_expect_eq(add(&w, AT + 2, &plan), DP_TAG_OVERLAP, "the same site");
	cr_expect_eq(add(&w, AT + 4, &plan), DP_TAG_OVERLAP, "a byte that its jump relies on");
	cr_expect_eq(add(&w, AT, &plan), DP_TAG_NO_SPACE, "a tail of unknown bytes");
	w.request.tactics = 0;
	cr_expect_eq(add(&w, AT + 8, &plan), DP_TAG_OVERLAP, "its last byte");
	world_fini(&w);
}

Test(plan, no_stub_out_of_reach_of_the_module)
{
	struct helper_module m;
	struct world w;
	struct dp_plan plan;
	helper_code(&m, AT, code, sizeof(code));
	world_init(&w, &m);
	only_room_is(w.space, AT + 0x100000000, AT + 0x100100000);
	cr_expect_eq(add(&w, AT + 8, &plan), DP_TAG_NO_SPACE);
	world_fini(&w);
}

Test(plan, message_names_instruction_tactics_and_reasons)
{
	struct helper_module m;
	struct world w;
	struct dp_plan plan;
	helper_code(&m, AT, code, sizeof(code));
	m.text.size = 0;
	world_init(&w, &m);
	only_room_is(w.space, AT + 0x10000, AT + 0x18000);
	w.request.site = AT;
	struct dp_error *err = dp_planner_add(w.planner, &w.request, &plan);
	cr_assert(err && err->cause);
	cr_expect(strstr(err->message, "0x555555555000: xorl %eax, %eax"), "%s", err->message);
	cr_expect(strstr(err->cause->message, "jump: the instruction has only 2 bytes; pun: "), "%s", err->cause->message);
	cr_expect(strstr(err->cause->message, "window: its function is unknown"), "%s", err->cause->message);
	dp_error_destroy(err);
	world_fini(&w);
}
