/* SPDX-License-Identifier: MIT */
#include "session/names.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void make(struct dp_names *names, const char *base, const char *expected)
{
	char *name = NULL;
	cr_assert_null(dp_names_make(names, base, &name));
	cr_expect_str_eq(name, expected);
	free(name);
}

Test(names, the_same_name_gets_a_number)
{
	struct dp_names names = {0};
	make(&names, "a", "a");
	make(&names, "a", "a_2");
	make(&names, "a", "a_3");
	make(&names, "b", "b");
	make(&names, "a_2", "a_2_2");
	dp_names_fini(&names);
}

Test(names, a_taken_name_is_told)
{
	struct dp_names names = {0};
	bool fresh;
	cr_assert_null(dp_names_add(&names, "a", &fresh));
	cr_expect(fresh);
	cr_assert_null(dp_names_add(&names, "a", &fresh));
	cr_expect_not(fresh);
	make(&names, "a", "a_2");
	dp_names_fini(&names);
}

Test(names, tens_of_thousands_of_one_name_are_all_different)
{
	struct dp_names names = {0};
	char expected[32];
	make(&names, "f", "f");
	for (unsigned i = 2; i <= 60000; i++) {
		snprintf(expected, sizeof(expected), "f_%u", i);
		make(&names, "f", expected);
	}
	cr_expect_eq(names.n, 60000);
	dp_names_fini(&names);
}
