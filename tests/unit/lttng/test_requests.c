/* SPDX-License-Identifier: MIT */
/* Which events may be registered, and when one is reused. A wrong name would make a whole trace unreadable. */
#include "tests/sinkhost/host.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static void load(void)
{
	host_load(DP_TEST_SINK_SO);
	host_begin();
}

TestSuite(requests, .init = load, .timeout = 30);

static const char *refusal(const char *field, enum dp_sink_type type, uint32_t size)
{
	host_begin();
	host_add("e", true);
	host_field("first", DP_SINK_BACKTRACE, 0, false);
	host_field(field, type, size, false);
	const struct dp_sink_event *e = host_serve();
	return e->event ? NULL : e->error;
}

Test(requests, field_names_that_break_the_metadata_are_refused)
{
	cr_assert_null(refusal("arg_0", DP_SINK_INT, 4));
	const char *const bad[] = {"", "a.b", "arg[0]", "0a", "a b", "\xc3\xa9", "first", "unreadable", "_first_length"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_not_null(refusal(bad[i], DP_SINK_INT, 4), "%s", bad[i]);
}

Test(requests, sizes_that_a_type_cannot_have_are_refused)
{
	cr_assert_not_null(refusal("x", DP_SINK_INT, 3));
	cr_assert_not_null(refusal("x", DP_SINK_UINT, 0));
	cr_assert_not_null(refusal("x", DP_SINK_FLOAT, 16));
	cr_assert_not_null(refusal("x", DP_SINK_BYTES, 0));
	cr_assert_not_null(refusal("x", (enum dp_sink_type)9, 4));
	cr_assert_null(refusal("x", DP_SINK_BYTES, 4000));
}

Test(requests, one_bad_event_does_not_hinder_the_others)
{
	host_add("good", false);
	host_field("x", DP_SINK_INT, 4, false);
	host_add("bad\"", false);
	host_add("bad\n", false);
	host_add("", false);
	host_add("also_good", false);
	const struct dp_sink_event *e = host_serve();
	cr_assert(e[0].event && e[0].gate);
	for (int i = 1; i < 4; i++)
		cr_assert(!e[i].event && !e[i].gate && e[i].error[0]);
	cr_assert(e[4].event && e[4].gate);
}

static uint64_t ask(const char *name, bool mask, enum dp_sink_type type, bool hex)
{
	host_begin();
	host_add(name, mask);
	host_field("x", type, 4, hex);
	return host_serve()->event;
}

static void release(uint64_t event)
{
	host_begin();
	host_release(event);
	host_serve();
}

Test(requests, a_parked_event_is_used_again_only_for_the_same_fields)
{
	const uint64_t first = ask("e", false, DP_SINK_INT, false);
	const uint64_t twin = ask("e", false, DP_SINK_INT, false);
	cr_assert(first && twin && first != twin);
	release(first);
	cr_assert_neq(ask("e", true, DP_SINK_INT, false), first);
	cr_assert_neq(ask("e", false, DP_SINK_UINT, false), first);
	cr_assert_neq(ask("e", false, DP_SINK_INT, true), first);
	cr_assert_neq(ask("f", false, DP_SINK_INT, false), first);
	cr_assert_eq(ask("e", false, DP_SINK_INT, false), first);
	cr_assert_neq(ask("e", false, DP_SINK_INT, false), first);
}

Test(requests, released_and_asked_in_one_request_is_used_again)
{
	const uint64_t first = ask("e", false, DP_SINK_INT, false);
	host_begin();
	host_release(first);
	host_add("e", false);
	host_field("x", DP_SINK_INT, 4, false);
	cr_assert_eq(host_serve()[1].event, first);
}

Test(requests, the_limit_of_a_process_is_said)
{
	char name[32];
	unsigned good = 0;
	for (int batch = 0; batch < 3; batch++) {
		host_begin();
		for (int i = 0; i < HOST_EVENTS; i++) {
			snprintf(name, sizeof(name), "e%d", batch * HOST_EVENTS + i);
			host_add(name, false);
		}
		const struct dp_sink_event *e = host_serve();
		for (int i = 0; i < HOST_EVENTS; i++)
			good += e[i].event != 0;
	}
	cr_assert_eq(good, 4096);
}
