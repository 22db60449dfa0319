/* SPDX-License-Identifier: MIT */
/* Reading the user's LTTng configuration: an error would send events to the wrong session, or to none. */
#include "output/lttng/lttng_rules.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- .lttngrc ---- */

static void rc(const char *text, const char *expected)
{
	char name[300] = "untouched";
	const bool found = dp_lttng_rc_session(text, name, sizeof(name));
	cr_expect_eq(found, expected != NULL, "%s", text);
	cr_expect_str_eq(name, expected ? expected : "untouched", "%s", text);
}

Test(rc, the_session_is_found)
{
	rc("session=foo\n", "foo");
	rc("session=foo", "foo");
	rc("other=1\r\nsession=with space\r\n", "with space");
	rc("session=a=b\n", "a=b");
}

Test(rc, the_last_one_counts)
{
	rc("session=one\nsession=two\n", "two");
}

Test(rc, no_session_is_found_where_there_is_none)
{
	rc("", NULL);
	rc("session=\n", NULL);
	rc("session\n", NULL);
	rc("mysession=foo\n", NULL);
	rc(" session=foo\n", NULL);
}

/* The name becomes part of a path and of a fixed-size buffer. */
Test(rc, a_name_that_is_none_is_not_taken)
{
	char text[600] = "session=";
	rc("session=../../etc/passwd\n", NULL);
	memset(text + 8, 'x', 400);
	rc(text, NULL);
	text[8 + 254] = '\0';
	char name[300];
	cr_assert(dp_lttng_rc_session(text, name, sizeof(name)));
	cr_assert_eq(strlen(name), 254);
	cr_assert_not(dp_lttng_rc_session(text, name, 254));
}

/* ---- globs ---- */

Test(rule, meets_events_of_ours)
{
	static const char *const rules[] = {
	        "*",         "**",           "d*",           "dyn*",         "dyn*foo",
	        "dynprobe*", "dynprobe:*",   "dynprobe:foo", "dynprobe:f*o", "*:foo",
	        "*foo",      "dynprobe:\\*", "dynprobe\\:x", "d*:*",         "*x",
	};
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
		cr_expect(dp_lttng_rule_meets(rules[i]), "%s", rules[i]);
}

Test(rule, does_not_meet_what_only_looks_like_ours)
{
	static const char *const rules[] = {
	        "",           "dyn",   "dynprobe", "dynprobe:", "dynprobes:*", "my:*",
	        "Dynprobe:*", "xdyn*", "dyn\\*",   "\\*",       "dynprobe;*",  "lttng_ust*",
	};
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
		cr_expect_not(dp_lttng_rule_meets(rules[i]), "%s", rules[i]);
}

Test(rule, matches_an_event_by_name)
{
	static const char *const good[] = {
	        "*",
	        "**",
	        "dyn*",
	        "dynprobe:*",
	        "dynprobe:foo_bar",
	        "dynprobe:f*r",
	        "dynprobe:foo*",
	        "*bar",
	        "*o*b*",
	        "dynprobe\\:foo_bar",
	        "d*:foo_bar*",
	};
	static const char *const bad[] = {
	        "",     "dynprobe:foo", "dynprobe:foo_ba", "dynprobe:foo_bars", "foo_bar", "*foo", "dynprobe:\\*", "dynprobe:b*",
	        "my:*", "*o*x*",        "dynprobe:",
	};
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		cr_expect(dp_lttng_rule_matches(good[i], "foo_bar"), "%s", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		cr_expect_not(dp_lttng_rule_matches(bad[i], "foo_bar"), "%s", bad[i]);
}

Test(exclusion, takes_away_all_or_only_some)
{
	cr_expect(dp_lttng_exclusion_covers("*"));
	cr_expect(dp_lttng_exclusion_covers("dyn*"));
	cr_expect(dp_lttng_exclusion_covers("dynprobe:*"));
	cr_expect(dp_lttng_exclusion_covers("dynprobe:**"));
	cr_expect_not(dp_lttng_exclusion_covers("dynprobe:a*"));
	cr_expect_not(dp_lttng_exclusion_covers("dyn*a"));
	cr_expect_not(dp_lttng_exclusion_covers("dynprobe:"));
	cr_expect_not(dp_lttng_exclusion_covers("dynprobe"));
	cr_expect_not(dp_lttng_exclusion_covers(""));
	cr_expect_not(dp_lttng_exclusion_covers("my*"));
}

/* ---- a saved session ---- */

#define HEAD  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<sessions>\n\t<session>\n\t\t<name>s</name><domains>"
#define TAIL  "</domains><started>false</started></session></sessions>"
#define UST   "<domain><type>UST</type><buffer_type>PER_UID</buffer_type><channels>"
#define JUL   "<domain><type>JUL</type><buffer_type>PER_UID</buffer_type><channels>"
#define END   "</channels><process_attr_trackers/></domain>"
#define ON    "<channel><name>c</name><enabled>true</enabled><events>"
#define OFF   "<channel><name>c</name><enabled>false</enabled><events>"
#define CLOSE "</events><contexts/></channel>"
#define EVENT(name, enabled, type, level, more)                                                                                  \
	"<event>\n<name>" name "</name><enabled>" enabled "</enabled><type>" type "</type><loglevel_type>" level                 \
	"</loglevel_type>" more "</event>"
#define PLAIN(name)                     EVENT(name, "true", "TRACEPOINT", "ALL", "")
#define CONFIG(domain, channel, events) HEAD domain channel events CLOSE END TAIL

Test(config, an_event_by_name)
{
	cr_expect(dp_lttng_config_wants(CONFIG(UST, ON, PLAIN("dynprobe:bar") PLAIN("dynprobe:foo")), "foo"));
	cr_expect_not(dp_lttng_config_wants(CONFIG(UST, ON, PLAIN("dynprobe:bar")), "foo"));
	cr_expect_not(dp_lttng_config_wants(CONFIG(UST, OFF, PLAIN("dynprobe:foo")), "foo"));
	cr_expect(dp_lttng_config_wants(
	        CONFIG(UST, ON,
	               EVENT("*", "true", "TRACEPOINT", "ALL", "<exclusions><exclusion>dynprobe:b*</exclusion></exclusions>")),
	        "foo"));
	cr_expect_not(dp_lttng_config_wants(
	        CONFIG(UST, ON,
	               EVENT("*", "true", "TRACEPOINT", "ALL", "<exclusions><exclusion>dynprobe:f*</exclusion></exclusions>")),
	        "foo"));
}

Test(config, a_rule_for_our_events_covers)
{
	cr_expect(dp_lttng_config_covers(CONFIG(UST, ON, PLAIN("dynprobe:*"))));
	cr_expect(dp_lttng_config_covers(CONFIG(UST, ON, PLAIN("my:*") PLAIN("*"))));
	cr_expect(dp_lttng_config_covers(CONFIG(UST, ON, PLAIN("dyn*") PLAIN("my:*"))));
	cr_expect(dp_lttng_config_covers(HEAD JUL END UST OFF PLAIN("my:*") CLOSE ON PLAIN("dyn*") CLOSE END JUL END TAIL));
}

Test(config, a_rule_that_is_not_for_us_does_not)
{
	cr_expect_not(dp_lttng_config_covers(CONFIG(UST, ON, "")));
	cr_expect_not(dp_lttng_config_covers(CONFIG(UST, ON, PLAIN("my:*"))));
	cr_expect_not(dp_lttng_config_covers(CONFIG(UST, ON, EVENT("*", "false", "TRACEPOINT", "ALL", ""))));
	cr_expect_not(dp_lttng_config_covers(CONFIG(UST, ON, EVENT("*", "true", "SYSCALL", "ALL", ""))));
	cr_expect_not(dp_lttng_config_covers(CONFIG(UST, ON, EVENT("*", "true", "TRACEPOINT", "RANGE", ""))));
	cr_expect_not(dp_lttng_config_covers(CONFIG(UST, OFF, PLAIN("*"))));
	cr_expect_not(dp_lttng_config_covers(CONFIG(JUL, ON, PLAIN("*"))));
}

/* The flags of one element must not carry over to the next. */
Test(config, a_neighbour_does_not_count)
{
	cr_expect_not(dp_lttng_config_covers(CONFIG(UST, ON, PLAIN("my:*") EVENT("dyn*", "false", "TRACEPOINT", "ALL", ""))));
	cr_expect_not(dp_lttng_config_covers(HEAD UST ON CLOSE END JUL ON PLAIN("*") CLOSE END TAIL));
	cr_expect_not(dp_lttng_config_covers(HEAD UST ON CLOSE OFF PLAIN("*") CLOSE END TAIL));
}

Test(config, exclusions)
{
#define EXCEPT(x) EVENT("dyn*", "true", "TRACEPOINT", "ALL", "<exclusions>" x "</exclusions>")
	cr_expect(dp_lttng_config_covers(CONFIG(UST, ON, EXCEPT("<exclusion>dynprobe:a*</exclusion>"))));
	cr_expect_not(
	        dp_lttng_config_covers(CONFIG(UST, ON, EXCEPT("<exclusion>a</exclusion><exclusion>dynprobe:*</exclusion>"))));
	cr_expect(dp_lttng_config_covers(CONFIG(UST, ON, EXCEPT("<exclusion>*</exclusion>") PLAIN("*"))));
}

Test(config, a_filter_is_text_whatever_it_says)
{
	cr_expect(dp_lttng_config_covers(
	        CONFIG(UST, ON, EVENT("dyn*", "true", "TRACEPOINT", "ALL", "<filter>a &lt; 3 &amp;&amp; b &gt; 1</filter>"))));
	cr_expect_not(dp_lttng_config_covers(
	        CONFIG(UST, ON, EVENT("my:*", "true", "TRACEPOINT", "ALL", "<filter>name == &quot;*&quot;</filter>"))));
}

/* Cut anywhere, the answer is no, and nothing beyond the end is read (the copy ends where its memory ends). */
Test(config, cut_short)
{
	static const char whole[] = CONFIG(UST, ON, PLAIN("dynprobe:*"));
	for (size_t n = 0; n < sizeof(whole) - 1; n++) {
		char *part = strndup(whole, n);
		cr_expect_not(dp_lttng_config_covers(part), "%zu", n);
		free(part);
	}
}

Test(config, deep_and_long)
{
	enum { N = 5000 };
	char *deep = malloc(N * 7 + 1), *at = deep;
	for (int i = 0; i < N; i++)
		at += sprintf(at, "<event>");
	cr_expect_not(dp_lttng_config_covers(deep));
	memset(deep, '/', N);
	cr_expect_not(dp_lttng_config_covers(deep));
	memset(deep, '<', N);
	cr_expect_not(dp_lttng_config_covers(deep));
	free(deep);
	cr_expect_not(dp_lttng_config_covers("</a></a></a>"));
	cr_expect_not(dp_lttng_config_covers("<>"));
	cr_expect_not(dp_lttng_config_covers(">"));
}
