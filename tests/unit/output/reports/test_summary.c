/* SPDX-License-Identifier: MIT */
#include "helper_output.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static char *text_of(const struct dp_summary *s, bool color)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);
	dp_summary_text(s, to, color);
	fclose(to);
	return text;
}

static char *json_of(const struct dp_summary *s)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);
	dp_summary_json(s, to);
	fclose(to);
	return text;
}

static void shows(const struct dp_summary *s, const char *want)
{
	char *text = text_of(s, false);
	cr_assert_str_eq(text, want);
	free(text);
}

Test(summary, one_clean_probe_is_short)
{
	struct dp_summary_probe p = {.name = "foo", .spec = "foo", .pid = 7, .tactic = "jump", .recorded = 12};
	struct dp_summary s = {.probe = &p,
	                       .n = 1,
	                       .attach_ns = 12345678,
	                       .armed_ns = 3000400000,
	                       .detach_ns = 2300000,
	                       .pause_attach_ns = 312999,
	                       .pause_detach_ns = 240000};
	s.record_dir = "/root/lttng-traces/dynprobe-x";
	s.ended_by = "interrupt";
	shows(&s, "dynprobe: 1 probe placed\n"
	          "  hits      12   recorded 12   lost 0\n"
	          "  probed    for 3s; placed in 12.3ms (program paused 313us), removed in 2.3ms (program paused 240us)\n"
	          "  ended by  interrupt\n"
	          "  trace     /root/lttng-traces/dynprobe-x\n");
	s.launched = true;
	s.pause_detach_ns = 0;
	s.record_dir = NULL;
	shows(&s, "dynprobe: 1 probe placed\n"
	          "  hits      12   recorded 12   lost 0\n"
	          "  probed    for 3s; placed in 12.3ms, removed in 2.3ms\n"
	          "  ended by  interrupt\n");
}

/* 12 processes with two probes each, whose numbers and hits grow; then one without probes. */
Test(summary, several_processes_have_a_line_each_up_to_ten)
{
	struct dp_summary_probe p[25];
	struct dp_summary s = {.probe = p, .n = 25};
	for (int i = 0; i < 25; i++)
		p[i] = (struct dp_summary_probe){.name = "a",
		                                 .spec = "a",
		                                 .pid = i / 2 + 1,
		                                 .comm = "p",
		                                 .recorded = (uint64_t)i,
		                                 .tactic = i < 24 ? "jump" : NULL,
		                                 .tag = i < 24 ? NULL : "DP-SYS"};
	char *text = text_of(&s, false);
	cr_expect(strstr(text, "    pid     process                  hits      recorded          lost\n"
	                       "    12      p                          45            45             0\n"
	                       "    11      p                          41            41             0\n"),
	          "%s", text);
	cr_expect(strstr(text, "    3       p                           9             9             0\n"
	                       "    ... and 2 more\n"),
	          "%s", text);
	free(text);
	cr_expect(!strstr(text = text_of(&s, false), "probe   "), "one table: %s", text);
	free(text);
	text = json_of(&s);
	cr_expect(strstr(text, "\"processes\":[{\"pid\":1,\"comm\":\"p\",\"placed\":2,\"hits\":1,"), "%s", text);
	cr_expect(strstr(text, ",{\"pid\":13,\"comm\":\"p\",\"placed\":0,"), "%s", text);
	free(text);
	p[0].name = "one for each";
	s.n = 1;
	text = text_of(&s, false);
	cr_expect(!strstr(text, "process "), "%s", text);
	free(text);
}

Test(summary, refusals_losses_and_leftovers_are_loud)
{
	struct dp_summary_probe p[] = {
	        {.name = "quiet", .spec = "quiet", .pid = 7, .tactic = "pun"},
	        {.name = "busy",
	         .spec = "busy",
	         .pid = 7,
	         .tactic = "jump",
	         .recorded = 12300,
	         .lost.full = 40,
	         .lost.forked = 5},
	        {.name = "foo_0x3",
	         .spec = "foo+0x3",
	         .pid = 7,
	         .tag = "DP-TOO-SHORT",
	         .reason = "no springboard within reach\nsecond line"},
	        {.name = "b",
	         .spec = "b",
	         .pid = 7,
	         .tactic = "jump",
	         .tag = "DP-FOREIGN",
	         .reason = "a breakpoint\033 came",
	         .retired = true},
	};
	struct dp_summary s = {.probe = p, .n = 4, .left_bytes = 4096, .left_why = "a thread is inside"};
	shows(&s, "dynprobe: 3 of 4 probes placed, 1 refused (DP-TOO-SHORT 1), 1 retired\n"
	          "  refused   foo+0x3  DP-TOO-SHORT  no springboard within reach\n"
	          "  retired   b        DP-FOREIGN    a breakpoint\\x1b came\n"
	          "  hits      12345   recorded 12300   lost 45 (ring full 40, in fork children 5)\n"
	          "            ring full: larger rings (--buffer-size), hits that wait (--on-full block=100ms), or fewer and "
	          "shorter events (--when, -t)\n"
	          "            in fork children: --follow records the children, too\n"
	          "    probe          hits      recorded          lost\n"
	          "    busy          12345         12300            45\n"
	          "    quiet             0             0             0\n"
	          "    b                 0             0             0\n"
	          "  left      4096 bytes stay in the target: a thread is inside\n");
}

Test(summary, nothing_placed_has_no_hits)
{
	struct dp_summary_probe p = {.name = "foo", .spec = "foo", .pid = 7, .tag = "DP-BUSY"};
	struct dp_summary s = {.probe = &p, .n = 1};
	shows(&s, "dynprobe: 0 of 1 probe placed, 1 refused (DP-BUSY 1)\n  refused   foo  DP-BUSY\n");
}

Test(summary, what_patterns_leave_out_is_a_count_and_no_row)
{
	struct dp_summary_probe p[] = {
	        {.name = "f", .spec = "f", .pid = 7, .tactic = "jump", .recorded = 1},
	        {.name = "g", .spec = "g", .pid = 7, .tag = "DP-NO-SIZE", .reason = "r", .left_out = true},
	        {.name = "h", .spec = "h", .pid = 7, .tag = "DP-NO-SIZE", .reason = "r", .left_out = true},
	        {.name = "i", .spec = "i", .pid = 7, .tag = "DP-BUSY", .reason = "r"},
	};
	struct dp_summary s = {.probe = p, .n = 4};
	shows(&s, "dynprobe: 1 of 2 probes placed, 1 refused (DP-BUSY 1), 2 places of patterns left out (DP-NO-SIZE 2)\n"
	          "  refused   i  DP-BUSY  r\n"
	          "  hits      1   recorded 1   lost 0\n");
	char *text = json_of(&s);
	cr_expect_not_null(strstr(text, "\"asked\":4,\"placed\":1,\"refused\":3,\"left_out\":2,"), "%s", text);
	free(text);
}

Test(summary, memory_that_is_read_by_system_calls_is_said)
{
	struct dp_summary_probe p = {.name = "f", .spec = "f", .pid = 7, .tactic = "jump", .recorded = 1};
	struct dp_summary s = {.probe = &p, .n = 1, .by_calls = "thread 9 \"x\""};
	shows(&s, "dynprobe: 1 probe placed\n"
	          "  hits      1   recorded 1   lost 0\n"
	          "  memory    read by system calls, which takes microseconds: thread 9 \"x\"\n");
	char *text = json_of(&s);
	cr_expect_not_null(strstr(text, ",\"memory_by_calls\":{\"why\":\"thread 9 \\\"x\\\"\",\"ns\":null},"), "%s", text);
	free(text);
	s.by_calls_ns = 1500000;
	shows(&s, "dynprobe: 1 probe placed\n"
	          "  hits      1   recorded 1   lost 0\n"
	          "  memory    read by system calls, which takes microseconds, for 1.5ms: thread 9 \"x\"\n");
	text = json_of(&s);
	cr_expect_not_null(strstr(text, ",\"ns\":1500000},"), "%s", text);
	free(text);
	s.by_calls = NULL;
	text = json_of(&s);
	cr_expect_not_null(strstr(text, ",\"memory_by_calls\":null,"), "%s", text);
	free(text);
}

Test(summary, sites_that_people_call_the_same_are_one_row_and_verbose_lists_them_with_their_tactics)
{
	struct dp_summary_probe p[] = {
	        {.name = "f_return", .title = "f:return", .spec = "f+1", .pid = 7, .tactic = "jump", .recorded = 1},
	        {.name = "f", .spec = "f", .pid = 7, .tactic = "pun", .recorded = 5},
	        {.name = "f_return_2",
	         .title = "f:return",
	         .spec = "f+9",
	         .pid = 7,
	         .tactic = "trap",
	         .recorded = 2,
	         .lost.other = 4},
	};
	struct dp_summary s = {
	        .probe = p, .n = 3, .attach = {.stops = 3, .held_ns = 1000}, .attach_ns = 1, .pause_attach_ns = 5000};
	char *text = text_of(&s, false);
	cr_expect(strstr(text, "    probe             hits      recorded          lost\n"
	                       "    f:return             7             3             4\n"
	                       "    f                    5             5             0\n"),
	          "%s", text);
	cr_expect(!strstr(text, "stops") && !strstr(text, "trap"), "%s", text);
	free(text);
	s.verbose = true;
	text = text_of(&s, false);
	cr_expect(strstr(text, "3 probes placed (1 jump, 1 pun, 1 trap)") &&
	                  strstr(text, "(program paused 5us: 3 stops, 1us in total)") &&
	                  strstr(text, "    f:return             6             2             4  trap\n"),
	          "%s", text);
	free(text);
	text = json_of(&s);
	cr_expect(strstr(text, "{\"name\":\"f_return_2\",\"title\":\"f:return\","), "%s", text);
	free(text);
}

Test(summary, several_targets_are_told_apart)
{
	struct dp_summary_probe p[] = {
	        {.name = "f", .spec = "f", .pid = 7, .tactic = "jump", .recorded = 1},
	        {.name = "f", .spec = "f", .pid = 8, .tactic = "jump", .recorded = 2},
	        {.name = "f", .spec = "f", .pid = 9, .tag = "DP-BUSY", .reason = "busy"},
	};
	struct dp_summary s = {.probe = p, .n = 3};
	char *text = text_of(&s, false);
	cr_assert_not_null(strstr(text, "  refused   9       f  DP-BUSY  busy\n"), "%s", text);
	cr_assert_not_null(strstr(text, "    8       f                 2             2             0\n"), "%s", text);
	free(text);
}

Test(summary, processes_are_not_counted_as_probes)
{
	struct dp_summary_probe p[] = {
	        {.name = "f", .spec = "f", .pid = 7, .tactic = "jump", .recorded = 1},
	        {.name = "f", .spec = "f", .pid = 8, .tactic = "jump", .recorded = 2},
	        {.name = "f", .spec = "f", .pid = 0, .processes = 3, .tactic = "jump", .recorded = 4},
	};
	struct dp_summary s = {.probe = p, .n = 3};
	shows(&s, "dynprobe: 1 probe in 5 processes placed\n"
	          "  hits      7   recorded 7   lost 0\n"
	          "    pid     probe          hits      recorded          lost\n"
	          "    3 ended f                 4             4             0\n"
	          "    8       f                 2             2             0\n"
	          "    7       f                 1             1             0\n");
	p[1].tactic = NULL;
	p[1].tag = "DP-BUSY";
	char *text = text_of(&s, false);
	cr_expect_eq(strstr(text, "2 of 3 places of 1 probe in 5 processes placed, 1 refused (DP-BUSY 1)\n"), text + 10, "%s",
	             text);
	free(text);
}

Test(summary, aggregations_have_said_the_hits)
{
	struct dp_summary_probe p[] = {
	        {.name = "f", .spec = "f", .pid = 7, .tactic = "jump", .recorded = 1},
	        {.name = "g", .spec = "g", .pid = 7, .tactic = "jump", .recorded = 2},
	};
	struct dp_summary s = {.probe = p, .n = 2, .aggregated = true};
	shows(&s, "dynprobe: 2 probes placed\n  hits      3   recorded 3   lost 0\n");
	p[1].lost_crowded = 5;
	char *text = text_of(&s, false);
	cr_expect(strstr(text, "    g                 7             2             5\n"), "%s", text);
	free(text);
}

Test(summary, many_probes_without_a_hit_are_counted_and_long_names_shortened)
{
	struct dp_summary_probe p[20] = {0};
	for (size_t i = 0; i < 20; i++)
		p[i] = (struct dp_summary_probe){.name = "f", .spec = "f", .pid = 7, .tactic = "jump"};
	p[3].name = "std::vector<a::rather::long::name>::push_back(a::rather::long::name const&)";
	p[3].recorded = 2;
	p[4].recorded = 1;
	struct dp_summary s = {.probe = p, .n = 20};
	char *text = text_of(&s, false);
	cr_expect(strstr(text, "    std::vector<a::rat...:long::name const&)             2             2             0\n"
	                       "    f                                                    1             1             0\n"
	                       "    18 probes without a hit\n"),
	          "%s", text);
	free(text);
	s.n = 5;
	text = text_of(&s, false);
	cr_expect_null(strstr(text, "without a hit"), "%s", text);
	free(text);
}

Test(summary, long_lists_are_cut)
{
	struct dp_summary_probe p[100] = {0};
	for (size_t i = 0; i < 100; i++)
		p[i] = (struct dp_summary_probe){
		        .name = "f", .spec = "f", .tactic = i & 1 ? "jump" : NULL, .tag = "DP-BUSY", .reason = "r"};
	struct dp_summary s = {.probe = p, .n = 100};
	char *text = text_of(&s, false);
	cr_assert_not_null(strstr(text, "            ... and 30 more\n"), "%s", text);
	cr_assert_not_null(strstr(text, "    ... and 30 more\n"));
	free(text);
}

Test(summary, silent_places_of_system_calls_are_counted_and_not_listed)
{
	struct dp_summary_probe p[60] = {0};
	for (size_t i = 0; i < 60; i++)
		p[i] = (struct dp_summary_probe){.name = "syscall_write_entry", .spec = "s", .tactic = "jump", .is_call = true};
	p[7].name = "syscall_write_entry_8";
	p[7].recorded = 3;
	p[9].lost.full = 2;
	p[11].retired = true;
	p[59] = (struct dp_summary_probe){.name = "mine", .spec = "mine", .tactic = "pun"};
	struct dp_summary s = {.probe = p, .n = 60};
	char *text = text_of(&s, false);
	cr_expect_not_null(strstr(text, "    probe                          hits      recorded          lost\n"
	                                "    syscall_write_entry_8             3             3             0\n"
	                                "    syscall_write_entry               2             0             2\n"
	                                "    mine                              0             0             0\n"
	                                "    56 probes of system calls without a hit\n"),
	                   "%s", text);
	free(text);
	s.n = 1;
	text = text_of(&s, false);
	cr_expect_null(strstr(text, "probe   "), "%s", text);
	cr_expect_not_null(strstr(text, "    1 probe of system calls without a hit\n"), "%s", text);
	free(text);
	text = json_of(&s);
	cr_expect_not_null(strstr(text, "syscall_write_entry"), "%s", text);
	free(text);
}

Test(summary, children_that_were_cleaned_or_not)
{
	const struct dp_summary_child left[] = {{.pid = 9, .comm = "w\033", .tag = "DP-TRACED", .why = "strace \"traces\" it"}};
	struct dp_summary_children c = {.cleaned = 1, .left = left, .nleft = 1};
	struct dp_summary s = {.children = &c};
	char *text = text_of(&s, false), *json = json_of(&s);
	cr_expect_not_null(strstr(text, "  cleaned   1 fork child, which had inherited the probes\n"
	                                "  left      probes in fork child 9 (w\\x1b): strace \"traces\" it [DP-TRACED]\n"),
	                   "%s", text);
	cr_expect_not_null(strstr(json, ",\"children_cleaned\":1,\"children_left\":[{\"pid\":9,\"comm\":\"w\\u001b\","
	                                "\"tag\":\"DP-TRACED\",\"reason\":\"strace \\\"traces\\\" it\"}],"),
	                   "%s", json);
	free(text);
	free(json);
	c = (struct dp_summary_children){.asked = true, .followed = 2};
	text = text_of(&s, false);
	json = json_of(&s);
	cr_expect_null(strstr(text, "cleaned"), "%s", text);
	cr_expect_not_null(strstr(text, "followed  2 fork children\n"), "%s", text);
	cr_expect_not_null(strstr(json, ",\"followed\":2,\"children_cleaned\":0,\"children_left\":[],"), "%s", json);
	free(text);
	free(json);
}

Test(summary, escape_codes_only_with_colour)
{
	struct dp_summary_probe p = {.name = "foo", .spec = "foo", .tactic = "jump", .lost.full = 1};
	struct dp_summary s = {.probe = &p, .n = 1};
	char *plain = text_of(&s, false), *colored = text_of(&s, true);
	cr_assert_null(strchr(plain, '\033'));
	cr_assert_not_null(strstr(colored, "\033[1;31mlost 1\033[0m"));
	free(plain);
	free(colored);
}
