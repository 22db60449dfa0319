/* SPDX-License-Identifier: MIT */
/* Tests of both ways to read rings: merged by time, or ring by ring in batches. */
#ifndef DP_TESTS_INJECTOR_HELPER_LANES_H
#define DP_TESTS_INJECTOR_HELPER_LANES_H

#include "injector/ring/drain.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

/* dp_drain_run(), or dp_drain_lanes() with each hit of a batch passed on alone, its payload in a copy. */
struct dp_error *drain_by(struct dp_drain *d, bool lanes, bool last, dp_hit_fn each, void *data);

/* A test that runs twice; *lanes is false, then true. */
#define BothTest(suite, name)                                                                                                    \
	ParameterizedTestParameters(suite, name)                                                                                 \
	{                                                                                                                        \
		static bool ways[] = {false, true};                                                                              \
		return cr_make_param_array(bool, ways, 2);                                                                       \
	}                                                                                                                        \
	ParameterizedTest(bool *lanes, suite, name)

#endif
