/* SPDX-License-Identifier: MIT */
/*
 * The text of list and --dry-run: which bytes change and which only must not change, and no control characters from a file's
 * symbols.
 */
#include "helper_output.h"
#include "output/reports/plan.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN(call)                                                                                                              \
	({                                                                                                                       \
		char *text_ = NULL;                                                                                              \
		size_t size_ = 0;                                                                                                \
		FILE *to = open_memstream(&text_, &size_);                                                                       \
		call;                                                                                                            \
		fclose(to);                                                                                                      \
		text_;                                                                                                           \
	})

static const uint8_t before[] = {0x41, 0x54, 0x55, 0x53, 0x48}, after[] = {0xe9, 0x00, 0x55, 0x53, 0x48};
static const uint8_t bad[] = {0x06};

static const struct dp_planned_bytes neighbour = {
        .addr = 0x2010,
        .where = "foo+0x10/0x20 [x]",
        .before = before,
        .after = after,
        .len = 5,
        .changed = 5,
        .stub = 0x9000,
        .stub_size = 20,
};

static struct dp_planned_site planned(void)
{
	return (struct dp_planned_site){
	        .pid = 42,
	        .name = "foo",
	        .spec = "foo",
	        .patch = {.addr = 0x2000,
	                  .where = "foo+0x0/0x20 [x]",
	                  .before = before,
	                  .after = after,
	                  .len = 5,
	                  .changed = 2,
	                  .stub = 0x8000,
	                  .springboard = 0x7ffb,
	                  .stub_size = 254},
	        .tactic = "evict",
	        .displaced = 2,
	        .evicted = &neighbour,
	        .nevicted = 1,
	};
}

Test(plan, text_tells_changed_bytes_from_those_relied_upon)
{
	const struct dp_planned_site s = planned();
	char *text = SHOWN(dp_plan_text(&s, to));
	cr_expect_str_eq(text, "foo  0x2000  foo+0x0/0x20 [x]  evict  41 54 | 55 53 48 -> e9 00 | 55 53 48\n"
	                       "    displaced 2, stub 254 bytes at 0x8000, springboard at 0x7ffb\n"
	                       "    evicts 0x2010  foo+0x10/0x20 [x]  41 54 55 53 48 -> e9 00 55 53 48\n"
	                       "      stub 20 bytes at 0x9000\n");
	free(text);
}

Test(plan, json_has_the_same)
{
	const struct dp_planned_site s = planned();
	char *text = SHOWN(dp_plan_json(&s, to));
	cr_expect_str_eq(text,
	                 "{\"type\":\"plan\",\"version\":1,\"pid\":42,\"name\":\"foo\",\"spec\":\"foo\",\"addr\":\"0x2000\","
	                 "\"where\":\"foo+0x0/0x20 [x]\",\"tactic\":\"evict\",\"tag\":null,\"reason\":null,"
	                 "\"old\":\"4154555348\",\"new\":\"e900555348\",\"changed\":2,\"relied_upon\":3,\"stub\":\"0x8000\","
	                 "\"stub_size\":254,\"springboard\":\"0x7ffb\",\"displaced\":2,\"evicted\":[{\"where\":"
	                 "\"foo+0x10/0x20 [x]\",\"addr\":\"0x2010\",\"old\":\"4154555348\",\"new\":\"e900555348\","
	                 "\"changed\":5,\"relied_upon\":0,\"stub\":\"0x9000\",\"stub_size\":20,\"springboard\":null}]}\n");
	free(text);
}

Test(plan, a_refusal_has_its_tag_and_reason_and_no_bytes)
{
	const struct dp_planned_site s = {.pid = 42,
	                                  .name = "foo",
	                                  .spec = "foo\033[2J",
	                                  .patch = {.addr = 0x2000, .where = "\033[2J"},
	                                  .tag = "DP-TOO-SHORT",
	                                  .reason = "a \"reason\"\n"};
	char *text = SHOWN(dp_plan_text(&s, to)), *json = SHOWN(dp_plan_json(&s, to));
	cr_expect_str_eq(text, "foo  0x2000  \\x1b[2J  refused: a \"reason\"\\n [DP-TOO-SHORT]\n");
	cr_expect_str_eq(
	        json,
	        "{\"type\":\"plan\",\"version\":1,\"pid\":42,\"name\":\"foo\",\"spec\":\"foo\\u001b[2J\",\"addr\":\"0x2000\","
	        "\"where\":\"\\u001b[2J\",\"tactic\":null,\"tag\":\"DP-TOO-SHORT\",\"reason\":\"a \\\"reason\\\"\\n\"}\n");
	free(text);
	free(json);
}

Test(plan, totals)
{
	const struct dp_plan_count tactic[] = {{"jump", 2}, {"pun", 1}, {NULL, 0}}, refusal[] = {{"DP-TOO-SHORT", 1}, {NULL, 0}};
	struct dp_plan_total t = {.pid = 42,
	                          .comm = "x\033",
	                          .asked = 4,
	                          .placed = 3,
	                          .tactic = tactic,
	                          .refusal = refusal,
	                          .text_pages = 1,
	                          .stub_mappings = 2,
	                          .stub_bytes = 12288,
	                          .own_mappings = 3,
	                          .own_bytes = 5000,
	                          .ring_bytes = 1 << 20,
	                          .ring_memory = 1 << 19,
	                          .install_ns = 103000000,
	                          .removal_ns = 40000000,
	                          .pause_ns = 2000000,
	                          .together_ns = 500000};
	char *text = SHOWN(dp_plan_total_text(&t, to)), *json = SHOWN(dp_plan_total_json(&t, to));
	cr_expect_str_eq(text,
	                 "42 x\\x1b: 3 of 4 placed (2 jump, 1 pun), 1 refused (1 DP-TOO-SHORT)\n"
	                 "  copied text: 1 page (4 KiB)\n"
	                 "  mappings: 2 for stubs (12 KiB), 3 for agent and data (5 KiB; rings: 1024 KiB of address space, "
	                 "512 KiB of memory at most)\n"
	                 "  time: about 103 ms to install, 40 ms to remove; threads are held for at most 2 ms one at a time, "
	                 "for at most 0.5 ms together\n");
	cr_expect(strstr(json, "\"asked\":4,\"placed\":3,\"refused\":1,\"tactics\":{\"jump\":2,\"pun\":1},"
	                       "\"refusals\":{\"DP-TOO-SHORT\":1},\"evicted\":0,\"hooks\":0,\"text_pages\":1,\"stub_mappings\":2,"
	                       "\"stub_bytes\":12288,\"own_mappings\":3,\"own_bytes\":5000,\"ring_bytes\":1048576,\"ring_"
	                       "memory\":524288,\"install_ns\":103000000,\"removal_ns\":40000000,\"pause_ns\":2000000,"
	                       "\"together_ns\":500000,\"note\":null}\n"),
	          "%s", json);
	free(text);
	free(json);
}

/* ---- list --------------------------------------------------------------------------------------------------------------- */

static const struct dp_listed_site sites[] = {
        {.addr = 0x2000, .bytes = before, .n = 2, .text = "push %r12", .tactic = "pun"},
        {.addr = 0x2002, .bytes = bad, .n = 1, .text = "(bad)", .tag = "DP-UNDECODABLE", .reason = "no instruction"},
};

static struct dp_listed_function function(void)
{
	static const char *const alias[] = {"__foo"};
	return (struct dp_listed_function){.path = "/lib/libx.so",
	                                   .module = "libx.so",
	                                   .name = "foo",
	                                   .addr = 0x2000,
	                                   .size = 3,
	                                   .vaddr = 0x1000,
	                                   .alias = alias,
	                                   .naliases = 1,
	                                   .site = sites,
	                                   .nsites = 2};
}

Test(function, text)
{
	struct dp_listed_function f = function();
	char *text = SHOWN(dp_function_text(&f, true, to));
	cr_expect_str_eq(text,
	                 "0x2000       3  libx.so!foo\n"
	                 "    +0x0    0x2000  41 54                    push %r12                               pun\n"
	                 "    +0x2    0x2002  06                       (bad)                                   DP-UNDECODABLE  "
	                 "no instruction\n");
	free(text);
	f.site = NULL;
	f.name = "";
	f.size = 0;
	f.ifunc = true;
	text = SHOWN(dp_function_text(&f, true, to));
	cr_expect_str_eq(text, "0x2000       ?  libx.so!0x1000  (ifunc)\n");
	free(text);
}

Test(function, json)
{
	struct dp_listed_function f = function();
	char *text = SHOWN(dp_function_json(&f, to));
	cr_expect_str_eq(text, "{\"type\":\"function\",\"version\":1,\"module\":\"libx.so\",\"path\":\"/lib/"
	                       "libx.so\",\"name\":\"foo\",\"spec\":\"libx.so!foo\","
	                       "\"addr\":\"0x2000\",\"file_addr\":\"0x1000\",\"size\":3,\"ifunc\":false,\"aliases\":[\"__foo\"],"
	                       "\"sites\":[{\"offset\":0,\"addr\":\"0x2000\",\"bytes\":\"4154\",\"text\":\"push %r12\","
	                       "\"tactic\":\"pun\",\"tag\":null,\"reason\":null,\"source\":null},{\"offset\":2,\"addr\":"
	                       "\"0x2002\",\"bytes\":\"06\","
	                       "\"text\":\"(bad)\",\"tactic\":null,\"tag\":\"DP-UNDECODABLE\",\"reason\":\"no instruction\","
	                       "\"source\":null}]}\n");
	free(text);
	f.site = NULL;
	f.name = "";
	f.size = 0;
	text = SHOWN(dp_function_json(&f, to));
	cr_expect(strstr(text, "\"name\":null,\"spec\":\"libx.so!0x1000\""), "%s", text);
	cr_expect(strstr(text, "\"size\":null,\"ifunc\":false,\"aliases\":[\"__foo\"]}\n"), "%s", text);
	free(text);
}

Test(function, names_that_a_file_chose_reach_no_terminal)
{
	struct dp_listed_function f = {.module = "l\033[2J", .name = "f\nx", .addr = 0x2000, .size = 3};
	char *text = SHOWN(dp_function_text(&f, false, to));
	cr_expect_str_eq(text, "0x2000       3  l\\x1b[2J!f\\nx\n");
	free(text);
}
