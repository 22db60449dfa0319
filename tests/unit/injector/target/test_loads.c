/* SPDX-License-Identifier: MIT */
/* What a thread that loads a library finds when the tool leaves. */
#include "injector/loads.h"
#include "injector/target/target.h"

#include <criterion/criterion.h>

static struct dp_control control;
static struct dp_target t = {.installed = true, .data = (uint8_t *)&control};

/* It would sleep on the old value of loads_done after the call that wakes sleepers, for as long as --max-wait says. */
Test(loads, thread_that_is_about_to_wait_is_answered_by_a_tool_that_leaves)
{
	control = (struct dp_control){.loads = 5, .loads_done = 3};
	dp_loads_serve(&t, true);
	cr_expect_eq(control.loads_served, 1);
	cr_expect_eq(control.loads_done, 3, "not answered yet");
	dp_loads_serve(&t, false);
	cr_expect_eq(control.loads_served, 0);
	cr_expect_eq(control.loads_done, 5);
}
