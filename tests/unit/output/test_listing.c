/* SPDX-License-Identifier: MIT */
/* The list of a process's probes: text from the process's memory must not reach the terminal unescaped, nor break the JSON. */
#include "helper_output.h"

#include "injector/injector.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static char *listed(void (*list)(const struct dp_listing *l, FILE *to), const struct dp_listing *l)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	list(l, f);
	fclose(f);
	return text;
}

static struct dp_listing_probe enabled_probe(void)
{
	static char first[] = "reg:rdi", second[] = "backtrace";
	static char *contexts[] = {first, second};
	return (struct dp_listing_probe){
	        .name = "foo",
	        .spec = "foo",
	        .state = "enabled",
	        .context = contexts,
	        .ncontexts = 2,
	        .when = "arg0 > 4",
	        .where = "foo+0x0/0x21 [server]",
	        .sink = "ring",
	        .addr = 0x401136,
	        .loss = {.lost.overwritten = 3, .lost.unprimed = 4},
	};
}

Test(listing, text)
{
	struct dp_listing_probe p[2] = {enabled_probe(), enabled_probe()};
	p[1].addr = 0;
	p[1].name = "gone";
	p[1].state = "removed";
	char *text = listed(dp_listing_text, &(struct dp_listing){.pid = 42, .comm = "server", .probe = p, .n = 2});
	cr_expect_str_eq(text, "42 server: 1 probe\n"
	                       "  foo  enabled   0x401136  foo+0x0/0x21 [server]  ring\n"
	                       "      records  reg:rdi, backtrace\n"
	                       "      when     arg0 > 4\n"
	                       "      lost     7 (in threads that LTTng did not know yet 4, overwritten by later ones 3)\n");
	free(text);
}

Test(listing, json)
{
	struct dp_listing_probe p = enabled_probe();
	p.sink = "lttng";
	p.session = "mine";
	char *text = listed(dp_listing_json, &(struct dp_listing){.pid = 42, .comm = "server", .probe = &p, .n = 1});
	cr_expect_str_eq(
	        text,
	        "{\"type\":\"status\",\"version\":1,\"pid\":42,\"comm\":\"server\",\"trouble\":null,\"probes\":["
	        "{\"name\":\"foo\",\"spec\":\"foo\",\"state\":\"enabled\",\"addr\":\"0x401136\","
	        "\"where\":\"foo+0x0/0x21 [server]\",\"sink\":\"lttng\",\"session\":\"mine\","
	        "\"contexts\":[\"reg:rdi\",\"backtrace\"],\"when\":\"arg0 > 4\","
	        "\"lost\":{\"total\":7,\"full\":0,\"no_slot\":0,\"forked\":0,\"abandoned\":0,\"damaged\":0,"
	        "\"nested\":0,\"unprimed\":4,\"no_stack\":0,\"overwritten\":3,\"unreadable\":0,\"unwanted\":0,\"unpaired\":0,\"crowded\":0,"
	        "\"other\":0}}],\"leftovers\":[]}\n");
	free(text);
}

Test(listing, leftovers_of_forks_and_killed_tools)
{
	const struct dp_leftover left[] = {
	        {.forked = true, .fork_of = 41, .fork_of_lives = true, .places = 12, .bytes = 8192},
	        {.forked = true, .fork_of = 41, .fork_of_lives = true, .tool = 40, .places = 1, .bytes = 4096},
	        {.forked = true, .fork_of = 41, .places = 0},
	        {.forked = true},
	        {.places = 2},
	};
	const struct dp_listing l = {.pid = 42, .comm = "server", .leftover = left, .nleftovers = 5};
	char *text = listed(dp_listing_text, &l), *json = listed(dp_listing_json, &l);
	cr_expect_str_eq(text, "42 server: 0 probes\n"
	                       "  leftover of a fork of 41: 12 changed places of text, 8 KiB\n"
	                       "  leftover of a fork of 41, which dynprobe (40) is probing: 1 changed place of text, 4 KiB\n"
	                       "  leftover of a fork of 41, which has ended: 0 changed places of text, 0 KiB\n"
	                       "  leftover of a fork of a probed process: 0 changed places of text, 0 KiB\n"
	                       "  leftover of an earlier dynprobe: 2 changed places of text, 0 KiB\n");
	cr_expect_not_null(strstr(json, "\"leftovers\":[{\"of\":\"fork\",\"fork_of\":41,\"fork_of_lives\":true,\"tool\":null,"
	                                "\"places\":12,\"bytes\":8192},"),
	                   "%s", json);
	cr_expect_not_null(strstr(json, "{\"of\":\"killed\",\"fork_of\":null,\"fork_of_lives\":false,\"tool\":null,"
	                                "\"places\":2,\"bytes\":0}]}\n"),
	                   "%s", json);
	free(text);
	free(json);
}

Test(listing, hostile_texts_are_harmless)
{
	static char evil[] = "\033[2J\"\n\302\233";
	static char *contexts[] = {evil};
	struct dp_listing_probe p = enabled_probe();
	p.spec = p.when = p.where = p.session = evil;
	p.context = contexts;
	p.ncontexts = 1;
	const struct dp_listing l = {.pid = 42, .comm = evil, .probe = &p, .n = 1, .trouble = evil};
	char *text = listed(dp_listing_text, &l), *json = listed(dp_listing_json, &l);
	for (const char *c = text; *c; c++)
		cr_expect((unsigned char)*c >= ' ' || *c == '\n', "%#x in the text", (unsigned char)*c);
	cr_expect_null(strstr(text, "\302\233"));
	for (const char *c = json; *c; c++)
		cr_expect((unsigned char)*c >= ' ' || (*c == '\n' && !c[1]), "%#x in the JSON", (unsigned char)*c);
	cr_expect_not_null(strstr(json, "\\u001b[2J\\\"\\n"));
	free(text);
	free(json);
}
