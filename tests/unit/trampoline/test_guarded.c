/* SPDX-License-Identifier: MIT */
/* Instructions that raise a signal by design: moved only where the agent's handler reports them at their own address. */
#include "helper_world.h"

#include <criterion/criterion.h>
#include <string.h>

#define AT UINT64_C(0x555555555000)

/* ud2; nops; int3; nops; hlt; nops */
static const uint8_t code[] = {0x0f, 0x0b, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xcc, 0x90, 0x90, 0x90,
                               0x90, 0x90, 0x90, 0x90, 0xf4, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3};

static bool has_pair(const struct dp_plan *plan, uint64_t original, const uint8_t *stub, size_t before)
{
	for (size_t i = 0; i < plan->npairs; i++) {
		const uint64_t at = plan->pair[i].stub - plan->stub - before;
		if (plan->pair[i].original == original && plan->pair[i].stub >= plan->stub + before &&
		    plan->pair[i].stub < plan->stub_end && !memcmp(stub + at, code + (original - before - AT), 1))
			return true;
	}
	return false;
}

static void place(bool faults, uint64_t site, size_t pc_behind)
{
	const struct dp_runtime runtime = {.agent = AT + 0x10000000, .identity = DP_ID_SELF, .faults = faults};
	struct helper_module m;
	struct world w;
	struct dp_plan plan;
	size_t n;
	helper_code(&m, AT, code, sizeof(code));
	world_init(&w, &m);
	dp_planner_destroy(w.planner);
	cr_assert_null(dp_planner_create(w.space, &runtime, &w.planner));
	w.request.site = site;
	w.request.tactics = DP_TACTICS_JUMPS | 1u << DP_TACTIC_TRAP;
	struct dp_error *err = dp_planner_add(w.planner, &w.request, &plan);
	cr_assert_eq(!err, faults);
	if (err)
		cr_expect_eq(err->tag, DP_TAG_UNRELOCATABLE);
	dp_error_destroy(err);
	if (faults) {
		cr_expect(plan.guarded, "it must not run before the handler is installed");
		world_freeze(&w);
		const uint8_t *stub = world_placed(&w, plan.stub, &n);
		cr_assert_not_null(stub);
		cr_expect(has_pair(&plan, site + pc_behind, stub, pc_behind), "its signal is reported at its own address");
	}
	world_fini(&w);
}

Test(guarded, refused_without_the_handler)
{
	place(false, AT, 0);
	place(false, AT + 8, 0);
	place(false, AT + 16, 0);
}

Test(guarded, placed_with_it_and_its_pc_is_known)
{
	place(true, AT, 0);
	place(true, AT + 8, 1);
	place(true, AT + 16, 0);
}
