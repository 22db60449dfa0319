/* SPDX-License-Identifier: MIT */
#include "base/duration.h"

#include <criterion/criterion.h>

static void reads(uint64_t ns, const char *want)
{
	char text[DP_DURATION_TEXT];
	cr_expect_str_eq(dp_duration(ns, text), want, "%llu: %s", (unsigned long long)ns, text);
}

Test(duration, has_three_digits_and_a_unit)
{
	reads(0, "0ns");
	reads(999, "999ns");
	reads(1000, "1us");
	reads(12345, "12.3us");
	reads(1230000, "1.23ms");
	reads(41477000, "41.5ms");
	reads(UINT64_C(1500000000), "1.5s");
	reads(UINT64_C(3600000000000), "3600s");
}

Test(duration, rounds_up_to_the_next_unit)
{
	reads(999499, "999us");
	reads(999500, "1ms");
	reads(9994, "9.99us");
	reads(9996, "10us");
	reads(99960, "100us");
	reads(UINT64_MAX, "18446744074s");
}
