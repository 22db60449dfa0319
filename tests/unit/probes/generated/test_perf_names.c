/* SPDX-License-Identifier: MIT */
/* The lines of a perf map, which any program may have written. */
#include "probes/generated/perf_names.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *text;
	uint64_t addr;
	const char *name; /* NULL: none */
} lines[] = {
        {"1000 10 foo\n", 0x1000, "foo"},
        {"1000 10 foo\n", 0x100f, "foo"},
        {"1000 10 foo\n", 0x1010, NULL},
        {"1000 10 foo\n", 0xfff, NULL},
        {"1000 10 foo", 0x1000, NULL}, /* not complete yet */
        {"1000 10 foo\r\n", 0x1000, "foo"},
        {"0x1000 0x10 foo\n", 0x1000, "foo"},
        {"1000 10 LazyCompile:*a b /x.js:1\n", 0x1000, "LazyCompile:*a b /x.js:1"},
        {"7FFFffff0000 A f\n", 0x7fffffff0009, "f"},
        {"1000 0 foo\n", 0x1000, NULL},
        {"1000 10 \n", 0x1000, NULL},
        {"1000 10\n", 0x1000, NULL},
        {"1000\n", 0x1000, NULL},
        {"\n\n 1000 10 foo\n", 0x1000, NULL},
        {"1000  10 foo\n", 0x1000, NULL},
        {"-1000 10 foo\n", 0x1000, NULL},
        {"g000 10 foo\n", 0x1000, NULL},
        {"0x 10 foo\n", 0, NULL},
        {"11000000000001000 10 foo\n", 0x1000, NULL}, /* more than 64 bits */
        {"800000000000 10 foo\n", 0x800000000000, NULL},
        {"1000 ffffffffffffffff foo\n", 0x2000, NULL},
        {"7fffffffffff 2 foo\n", 0x7fffffffffff, NULL},
        {"no line\n1000 10 foo\n", 0x1000, "foo"},
        {"1000 10 old\n1000 10 new\n", 0x1008, "new"},
        {"1000 100 old\n1040 10 new\n", 0x1048, "new"},
        {"1000 100 old\n1040 10 new\n", 0x1050, "old"},
        {"1040 10 old\n1000 100 new\n", 0x1048, "new"},
        {"2000 10 b\n1000 10 a\n3000 10 c\n", 0x1008, "a"},
        {"2000 10 b\n1000 10 a\n3000 10 c\n", 0x3008, "c"},
};

Test(perf_names, lines)
{
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		struct dp_perf_names *p = dp_perf_names_create();
		struct dp_perf_name n = {0};
		dp_perf_names_add(p, lines[i].text, strlen(lines[i].text));
		const bool found = dp_perf_names_at(p, lines[i].addr, &n);
		cr_expect_eq(found, lines[i].name != NULL, "%s", lines[i].text);
		if (found && lines[i].name)
			cr_expect_str_eq(n.name, lines[i].name);
		dp_perf_names_destroy(p);
	}
}

Test(perf_names, a_nul_is_no_name)
{
	struct dp_perf_names *p = dp_perf_names_create();
	struct dp_perf_name n;
	cr_assert_eq(dp_perf_names_add(p, "1000 10 a\0b\n", 12), 12);
	cr_assert_not(dp_perf_names_at(p, 0x1000, &n));
	dp_perf_names_destroy(p);
}

Test(perf_names, the_rest_of_a_line_is_left)
{
	struct dp_perf_names *p = dp_perf_names_create();
	cr_assert_eq(dp_perf_names_add(p, "1000 10 a\n2000 10", 17), 10);
	cr_assert_eq(dp_perf_names_add(p, "", 0), 0);
	cr_assert_eq(dp_perf_names_count(p), 1);
	dp_perf_names_destroy(p);
}

Test(perf_names, long_names_are_cut)
{
	struct dp_perf_names *p = dp_perf_names_create();
	struct dp_perf_name n;
	char line[8000] = "1000 10 ";
	memset(line + 8, 'x', 7000);
	strcat(line, "\n");
	dp_perf_names_add(p, line, strlen(line));
	cr_assert(dp_perf_names_at(p, 0x1000, &n));
	cr_assert_eq(strlen(n.name), DP_PERF_NAME_MAX);
	cr_assert_str_eq(n.name + DP_PERF_NAME_MAX - 5, "xx...");
	dp_perf_names_destroy(p);
}

/* Added in pieces, in a random order of addresses, with lookups in between; a table says what must be found. */
Test(perf_names, pieces_in_any_order)
{
	enum { PLACES = 1000, LINES = 20000 };
	static unsigned last[PLACES];
	struct dp_perf_names *p = dp_perf_names_create();
	struct dp_perf_name n;
	char line[64], name[32];
	srand(7);
	for (unsigned i = 1; i <= LINES; i++) {
		const unsigned at = (unsigned)rand() % PLACES;
		last[at] = i;
		snprintf(line, sizeof(line), "%x 10 f%u\n", 0x10000 + 0x10 * at, i);
		dp_perf_names_add(p, line, strlen(line));
		const unsigned asked = (unsigned)rand() % PLACES;
		if (rand() % 8)
			continue;
		cr_assert_eq(dp_perf_names_at(p, 0x10000 + 0x10 * asked + 7, &n), last[asked] != 0);
		snprintf(name, sizeof(name), "f%u", last[asked]);
		cr_assert(!last[asked] || !strcmp(n.name, name), "%s, not %s", n.name, name);
	}
	cr_assert_leq(dp_perf_names_count(p), PLACES);
	dp_perf_names_destroy(p);
}

Test(perf_names, what_is_kept_is_bounded)
{
	struct dp_perf_names *p = dp_perf_names_create();
	struct dp_perf_name n;
	char line[64];
	for (unsigned i = 0; i < DP_PERF_NAMES_MAX + 10; i++) {
		snprintf(line, sizeof(line), "%x 10 f\n", 0x10000 + 0x10 * i);
		cr_assert_eq(dp_perf_names_add(p, line, strlen(line)), strlen(line));
	}
	cr_assert_eq(dp_perf_names_count(p), DP_PERF_NAMES_MAX);
	cr_assert(dp_perf_names_at(p, 0x10000, &n));
	dp_perf_names_destroy(p);
}
