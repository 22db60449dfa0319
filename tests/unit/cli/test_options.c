/* SPDX-License-Identifier: MIT */
/* The command line: which option belongs to which probe, numbers with units, and what is refused. */
#include "cli/numbers.h"
#include "cli/options.h"

#include <criterion/criterion.h>
#include <getopt.h>
#include <string.h>

#define MAX_WORDS 32

static struct dp_error *parse(const char *line, struct dp_options *ret)
{
	static char *argv[MAX_WORDS];
	char **words = NULL;
	int argc = 0;
	cr_assert_null(dp_words_split(line, &words));
	while (words[argc] && argc < MAX_WORDS - 1) {
		argv[argc] = words[argc];
		argc++;
	}
	argv[argc] = NULL;
	optind = 0;
	return dp_options_parse(argc, argv, ret); /* the words stay: options point into them */
}

static struct dp_options parsed(const char *line)
{
	struct dp_options o;
	struct dp_error *err = parse(line, &o);
	cr_assert_null(err, "%s: %s", line, err ? err->message : "");
	return o;
}

static void refused(const char *line, enum dp_tag tag, const char *what)
{
	struct dp_options o;
	struct dp_error *err = parse(line, &o);
	cr_assert_not_null(err, "%s", line);
	cr_expect_eq(err->tag, tag, "%s: %s", line, dp_tag_name(err->tag));
	cr_expect(strstr(err->message, what), "%s: %s", line, err->message);
	dp_error_destroy(err);
}

Test(options, contexts_go_to_the_group_of_probes_before_them)
{
	struct dp_options o = parsed("dynprobe --pid 1 --function a --function b -t reg:rdi --probe c -t reg:rsi -t reg:rdx");
	cr_assert_eq(o.nprobes, 3);
	cr_expect_eq(o.probe[0].fields.n, 1);
	cr_expect_eq(o.probe[1].fields.n, 1);
	cr_assert_eq(o.probe[2].fields.n, 2);
	cr_expect_str_eq(o.probe[2].fields.field[0].name, "rsi");
	cr_expect(o.probe[0].entry && o.probe[1].entry && !o.probe[2].entry);
	dp_options_fini(&o);
}

Test(options, contexts_before_the_first_probe_go_to_all)
{
	struct dp_options o = parsed("dynprobe --pid 1 -t reg:rax --function a --function b -t reg:rdi");
	cr_assert_eq(o.nprobes, 2);
	cr_expect_eq(o.probe[0].fields.n, 2);
	cr_expect_eq(o.probe[1].fields.n, 2);
	dp_options_fini(&o);
}

Test(options, conditions_are_bound_like_contexts_and_given_once)
{
	struct dp_options o = parsed("dynprobe --pid 1 --function a --when 'rdi == 1' --function b");
	cr_expect_not_null(o.probe[0].when);
	cr_expect_null(o.probe[1].when);
	dp_options_fini(&o);
	refused("dynprobe --pid 1 --function a --when 'rdi == 1' --when 'rsi == 1'", DP_TAG_USAGE, "two conditions");
}

Test(options, names_are_given_derived_and_unique)
{
	struct dp_options o =
	        parsed("dynprobe --pid 1 --name mine --probe foo+0x6 --probe foo+0x6 --function foo --probe foo+0x6");
	cr_expect_str_eq(o.probe[0].name, "mine");
	cr_expect_str_eq(o.probe[1].name, "foo_0x6");
	cr_expect_str_eq(o.probe[2].name, "foo");
	cr_expect_str_eq(o.probe[3].name, "foo_0x6_2");
	dp_options_fini(&o);
	o = parsed("dynprobe --pid 1 --function foo --name after");
	cr_expect_str_eq(o.probe[0].name, "after");
	dp_options_fini(&o);
	refused("dynprobe --pid 1 --name x --function a --name x --function b", DP_TAG_USAGE, "two probes have the name");
	refused("dynprobe --pid 1 --name 1x --function a", DP_TAG_SYNTAX, "no event name");
	refused("dynprobe --pid 1 --name a --name b --function a", DP_TAG_USAGE, "each goes to one probe");
	refused("dynprobe --pid 1 --name a --function f --name b", DP_TAG_USAGE, "no probe to go to");
}

Test(options, the_commands_own_options_are_its_own)
{
	struct dp_options o = parsed("dynprobe --function main -- ls -l --pid 3");
	cr_expect_eq(o.npids, 0);
	cr_expect_str_eq(o.command[0], "ls");
	cr_expect_str_eq(o.command[1], "-l");
	cr_expect_str_eq(o.command[3], "3");
	dp_options_fini(&o);
	o = parsed("dynprobe --function main ls -l");
	cr_expect_str_eq(o.command[1], "-l");
	dp_options_fini(&o);
}

Test(options, pids_repeat)
{
	struct dp_options o = parsed("dynprobe --pid 12 -p 13 --function main");
	cr_assert_eq(o.npids, 2);
	cr_expect_eq(o.pid[0], 12);
	cr_expect_eq(o.pid[1], 13);
	dp_options_fini(&o);
}

Test(options, buffer_sizes_round_up_to_a_power_of_two)
{
	struct dp_options o = parsed("dynprobe --pid 1 --function f --buffer-size 100K");
	cr_expect_eq(o.ring_size, 128u << 10);
	dp_options_fini(&o);
	o = parsed("dynprobe --pid 1 --function f --buffer-size 1");
	cr_expect_eq(o.ring_size, 16u << 10);
	dp_options_fini(&o);
	refused("dynprobe --pid 1 --function f --buffer-size 2G", DP_TAG_USAGE, "at most 1G");
}

Test(options, refuse_DP_USAGE)
{
	refused("dynprobe --function f", DP_TAG_USAGE, "which process");
	refused("dynprobe --pid 1", DP_TAG_USAGE, "which places");
	refused("dynprobe --pid 1 --function f -c ls", DP_TAG_USAGE, "exclude each other");
	refused("dynprobe --pid 0 --function f", DP_TAG_USAGE, "--pid '0'");
	refused("dynprobe --pid -5 --function f", DP_TAG_USAGE, "positive whole number");
	refused("dynprobe --pid 1 --function f -n x", DP_TAG_USAGE, "-n 'x'");
	refused("dynprobe --pid 1 --function f --nonsense", DP_TAG_USAGE, "--nonsense");
	refused("dynprobe --pid 1 --function", DP_TAG_USAGE, "needs an argument");
	refused("dynprobe --pid 1 --function f -f xml", DP_TAG_USAGE, "none of text, json, ctf");
	refused("dynprobe --pid 1 --function f --no-record --record /tmp/x", DP_TAG_USAGE, "exclude each other");
}

Test(options, refuse_DP_SYNTAX)
{
	refused("dynprobe --pid 1 --function f -t nonsense", DP_TAG_SYNTAX, "nonsense");
	refused("dynprobe --pid 1 --function f --when 'rdi =='", DP_TAG_SYNTAX, "^");
}

Test(numbers, durations_have_units)
{
	uint64_t ns;
	cr_assert_null(dp_duration_parse("-d", "1.5", &ns));
	cr_expect_eq(ns, 1500000000u);
	cr_assert_null(dp_duration_parse("-d", "250ms", &ns));
	cr_expect_eq(ns, 250000000u);
	cr_assert_null(dp_duration_parse("-d", "2m", &ns));
	cr_expect_eq(ns, UINT64_C(120000000000));
	static const char *const bad[] = {"", "x", "-1", "0", "5 parsecs", "nan", "inf", "1e30"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct dp_error *err = dp_duration_parse("-d", bad[i], &ns);
		cr_expect_not_null(err, "'%s'", bad[i]);
		dp_error_destroy(err);
	}
}
