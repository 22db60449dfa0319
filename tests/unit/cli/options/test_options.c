/* SPDX-License-Identifier: MIT */
/* The command line: which option belongs to which probe, numbers with units, and what is refused. */
#include "cli/options/numbers.h"
#include "cli/options/options.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_WORDS 32

/* The first word is dynprobe, or the verb. */
static struct dp_error *parse(const char *line, struct dp_options *ret)
{
	enum dp_verb verb = DP_VERB_RUN;
	static char *argv[MAX_WORDS];
	char **words = NULL;
	int argc = 0;
	cr_assert_null(dp_words_split(line, &words));
	while (words[argc] && argc < MAX_WORDS - 1) {
		argv[argc] = words[argc];
		argc++;
	}
	argv[argc] = NULL;
	dp_verb_find(argv[0], &verb);
	return dp_options_parse_verb(verb, argc, argv, ret); /* argv stays alive: options point into it */
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
	cr_assert_eq(o.trace.nprobes, 3);
	cr_expect_eq(o.trace.probe[0].fields.n, 1);
	cr_expect_eq(o.trace.probe[1].fields.n, 1);
	cr_assert_eq(o.trace.probe[2].fields.n, 2);
	cr_expect_str_eq(o.trace.probe[2].fields.field[0].name, "rsi");
	cr_expect(o.trace.probe[0].entry && o.trace.probe[1].entry && !o.trace.probe[2].entry);
	dp_options_fini(&o);
}

Test(options, contexts_before_the_first_probe_go_to_all)
{
	struct dp_options o = parsed("dynprobe --pid 1 -t reg:rax --function a --function b -t reg:rdi");
	cr_assert_eq(o.trace.nprobes, 2);
	cr_expect_eq(o.trace.probe[0].fields.n, 2);
	cr_expect_eq(o.trace.probe[1].fields.n, 2);
	dp_options_fini(&o);
}

Test(options, conditions_are_bound_like_contexts_and_given_once)
{
	struct dp_options o = parsed("dynprobe --pid 1 --function a --when '$rdi == 1' --function b");
	cr_expect_not_null(o.trace.probe[0].when);
	cr_expect_null(o.trace.probe[1].when);
	dp_options_fini(&o);
	refused("dynprobe --pid 1 --function a --when 'rdi == 1' --when 'rsi == 1'", DP_TAG_USAGE, "two conditions");
}

Test(options, names_are_given_derived_and_unique)
{
	struct dp_options o =
	        parsed("dynprobe --pid 1 --name mine --probe foo+0x6 --probe foo+0x6 --function foo --probe foo+0x6");
	cr_expect_str_eq(o.trace.probe[0].name, "mine");
	cr_expect_str_eq(o.trace.probe[1].name, "foo_0x6");
	cr_expect_str_eq(o.trace.probe[2].name, "foo");
	cr_expect_str_eq(o.trace.probe[3].name, "foo_0x6_2");
	dp_options_fini(&o);
	o = parsed("dynprobe --pid 1 --function foo --name after");
	cr_expect_str_eq(o.trace.probe[0].name, "after");
	dp_options_fini(&o);
	refused("dynprobe --pid 1 --name x --function a --name x --function b", DP_TAG_USAGE, "two probes have the name");
	refused("dynprobe --pid 1 --name 1x --function a", DP_TAG_SYNTAX, "invalid event name");
	refused("dynprobe --pid 1 --name a --name b --function a", DP_TAG_USAGE, "each goes to one probe");
	refused("dynprobe --pid 1 --name a --function f --name b", DP_TAG_USAGE, "no probe follows it");
}

Test(options, the_commands_own_options_are_its_own)
{
	struct dp_options o = parsed("dynprobe --function main -- ls -l --pid 3");
	cr_expect_eq(o.trace.npids, 0);
	cr_expect_str_eq(o.trace.command[0], "ls");
	cr_expect_str_eq(o.trace.command[1], "-l");
	cr_expect_str_eq(o.trace.command[3], "3");
	dp_options_fini(&o);
	o = parsed("dynprobe --function main ls -l");
	cr_expect_str_eq(o.trace.command[1], "-l");
	dp_options_fini(&o);
}

Test(options, pids_repeat)
{
	struct dp_options o = parsed("dynprobe --pid 12 -p 13 --function main");
	cr_assert_eq(o.trace.npids, 2);
	cr_expect_eq(o.trace.pid[0], 12);
	cr_expect_eq(o.trace.pid[1], 13);
	dp_options_fini(&o);
}

Test(options, events_without_end_are_recorded_too)
{
	const char *const recorded[] = {"-d 1", "-f json", "-q -n 5", "-n 5 --record d", "-o f --record-size 1M", "-n 5 -f ctf"};
	const char *const shown[] = {"-n 5", "-o f", "-o -", "-n 5 -o f -f json", "--count", "--no-record"};
	char line[128];
	for (size_t i = 0; i < sizeof(recorded) / sizeof(*recorded); i++) {
		snprintf(line, sizeof(line), "dynprobe --pid 1 --function a %s", recorded[i]);
		struct dp_options o = parsed(line);
		cr_expect(!o.no_record, "%s", line);
		dp_options_fini(&o);
	}
	for (size_t i = 0; i < sizeof(shown) / sizeof(*shown); i++) {
		snprintf(line, sizeof(line), "dynprobe --pid 1 --function a %s", shown[i]);
		struct dp_options o = parsed(line);
		cr_expect(o.no_record, "%s", line);
		dp_options_fini(&o);
	}
}

Test(options, record_takes_a_word_that_is_no_option)
{
	static const struct {
		const char *words, *dir;
	} row[] = {{"--record -d 5s", ""},
	           {"--record", ""},
	           {"-n 5 --record -q", ""},
	           {"--record d -n 5", "d"},
	           {"--record=-d", "-d"}};
	char line[128];
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		snprintf(line, sizeof(line), "dynprobe --pid 1 --function a %s", row[i].words);
		struct dp_options o = parsed(line);
		cr_expect_str_eq(o.record, row[i].dir, "%s", line);
		cr_expect(!o.no_record, "%s", line);
		dp_options_fini(&o);
	}
	struct dp_options o = parsed("dynprobe --function a --record -- ls -l");
	cr_expect_str_eq(o.record, "");
	cr_expect_str_eq(o.trace.command[0], "ls");
	dp_options_fini(&o);
	refused("dynprobe --pid 1 --function f --record=", DP_TAG_USAGE, "directory is empty");
}

Test(options, profile_without_a_rate_takes_99_samples_a_second)
{
	struct dp_options o = parsed("dynprobe --pid 1 --profile --flame a.svg -d 1");
	cr_expect_eq(o.profile_hz, 99);
	cr_expect_str_eq(o.flame, "a.svg");
	dp_options_fini(&o);
	o = parsed("dynprobe --profile -- ls");
	cr_expect_eq(o.profile_hz, 99);
	cr_expect_str_eq(o.trace.command[0], "ls");
	dp_options_fini(&o);
	o = parsed("dynprobe --pid 1 --profile 7 --profile off-cpu");
	cr_expect(o.off_cpu && !o.profile_hz);
	dp_options_fini(&o);
	refused("dynprobe --profile ls", DP_TAG_USAGE, "--profile -- COMMAND");
}

Test(options, buffer_sizes_round_up_to_a_power_of_two)
{
	struct dp_options o = parsed("dynprobe --pid 1 --function f --buffer-size 100K");
	cr_expect_eq(o.trace.ring_size, 128u << 10);
	dp_options_fini(&o);
	o = parsed("dynprobe --pid 1 --function f --buffer-size 1");
	cr_expect_eq(o.trace.ring_size, 16u << 10);
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
	refused("dynprobe --pid 1 --function f -f xml", DP_TAG_USAGE, "use text, json, ctf, perfetto or openmetrics");
	refused("dynprobe --pid 1 --function f --no-record --record /tmp/x", DP_TAG_USAGE, "exclude each other");
}

Test(options, refuse_DP_SYNTAX)
{
	refused("dynprobe --pid 1 --function f -t 'non sense'", DP_TAG_SYNTAX, "non sense");
	refused("dynprobe --pid 1 --function f --when 'rdi =='", DP_TAG_SYNTAX, "^");
}

Test(options, what_was_typed_is_kept_for_each_probe)
{
	struct dp_options o = parsed("attach --pid 1 -t regs --function a -t reg:rdi --when 'rdi > 1' --function b");
	cr_assert_eq(o.trace.nprobes, 2);
	cr_expect(o.trace.attach);
	cr_assert_eq(o.trace.typed[0].ncontexts, 2);
	cr_expect_str_eq(o.trace.typed[0].context[0], "reg:rdi");
	cr_expect_str_eq(o.trace.typed[0].context[1], "regs");
	cr_expect_str_eq(o.trace.typed[0].when, "rdi > 1");
	cr_assert_eq(o.trace.typed[1].ncontexts, 1);
	cr_expect_null(o.trace.typed[1].when);
	dp_options_fini(&o);
}

Test(options, lttngs_own_options_choose_its_sink)
{
	struct dp_options o = parsed("dynprobe --pid 1 --function f");
	cr_expect_eq(o.trace.sink, DP_SINK_AUTO);
	dp_options_fini(&o);
	static const char *const given[] = {"--session s", "--set-url net://h", "--live", "--filter 'rdi > 1'", "--sink lttng"};
	for (size_t i = 0; i < sizeof(given) / sizeof(*given); i++) {
		dp_auto_free char *line = NULL, *ring = NULL;
		cr_assert(asprintf(&line, "dynprobe --pid 1 --function f %s", given[i]) > 0);
		o = parsed(line);
		cr_expect_eq(o.trace.sink, DP_SINK_LTTNG, "%s", line);
		dp_options_fini(&o);
		cr_assert(asprintf(&ring, "%s -o x", line) > 0);
		refused(ring, DP_TAG_USAGE, "go to LTTng");
	}
	refused("dynprobe --pid 1 --function f --sink ring --session s", DP_TAG_USAGE, "--session is for LTTng");
	refused("dynprobe --pid 1 --function f --sink disk", DP_TAG_USAGE, "use ring, lttng");
	refused("dynprobe --pid 1 --function f --session ''", DP_TAG_USAGE, "not empty");
}

Test(options, live_timers_are_in_microseconds_unless_said)
{
	static const struct {
		const char *given;
		uint64_t us;
	} rows[] = {{"--live", 1000000}, {"--live=500", 500}, {"--live=2s", 2000000}, {"--live=20ms", 20000}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		dp_auto_free char *line = NULL;
		cr_assert(asprintf(&line, "dynprobe --pid 1 --function f %s", rows[i].given) > 0);
		struct dp_options o = parsed(line);
		cr_expect_eq(o.trace.live_us, rows[i].us, "%s", line);
		dp_options_fini(&o);
	}
	refused("dynprobe --pid 1 --function f --live=0", DP_TAG_USAGE, "--live");
}

Test(options, verbs_take_names_and_their_own_options)
{
	struct dp_options o = parsed("disable foo --pid 12 'b*'");
	cr_assert_eq(o.nnames, 2);
	cr_expect_str_eq(o.name[0], "foo");
	cr_expect_str_eq(o.name[1], "b*");
	cr_expect_eq(o.trace.pid[0], 12);
	dp_options_fini(&o);
	o = parsed("add-context --pid 12 -e foo -t reg:rax -t backtrace");
	cr_expect_str_eq(o.event, "foo");
	cr_assert_eq(o.ncontexts, 2);
	cr_expect_str_eq(o.context[1], "backtrace");
	dp_options_fini(&o);
	o = parsed("record --pid 12 -d 0s");
	cr_expect(o.once);
	dp_options_fini(&o);
	o = parsed("status");
	dp_options_fini(&o);
	refused("disable --pid 12", DP_TAG_USAGE, "which probes");
	refused("enable foo", DP_TAG_USAGE, "which process");
	refused("detach foo --pid 12", DP_TAG_USAGE, "unexpected argument 'foo'");
	refused("detach --pid 12 --function f", DP_TAG_USAGE, "dynprobe detach has no option --function");
	refused("attach --pid 12", DP_TAG_USAGE, "which places");
	refused("attach --function f", DP_TAG_USAGE, "which process");
	refused("attach --pid 12 --function f -n 3", DP_TAG_USAGE, "no option -n");
	refused("add-context --pid 12 -t regs", DP_TAG_USAGE, "-e NAME");
	refused("add-context --pid 12 -e foo", DP_TAG_USAGE, "-t CONTEXT");
	refused("add-context --pid 12 -e foo -t 'non sense'", DP_TAG_SYNTAX, "non sense");
	refused("status -f ctf", DP_TAG_USAGE, "text or json");
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

Test(options, what_is_probed_of_a_function)
{
	struct dp_options o =
	        parsed("dynprobe --pid 1 --return f --probe f:return --probe f:entry --function f:entry -x 'a*' -x b");
	cr_assert_eq(o.trace.nprobes, 4);
	cr_expect_eq(o.trace.probe[0].spec.point, DP_POINT_RETURN);
	cr_expect_eq(o.trace.probe[1].spec.point, DP_POINT_RETURN);
	cr_expect(o.trace.probe[2].entry && o.trace.probe[3].entry);
	cr_expect_str_eq(o.trace.probe[2].name, "f_entry");
	cr_expect_str_eq(o.trace.probe[3].name, "f_entry_2");
	cr_assert_eq(o.trace.except.n, 2);
	cr_expect_str_eq(o.trace.except.item[0], "a*");
	dp_options_fini(&o);
}

Test(options, USAGE_of_an_option_and_a_spec_that_contradict_each_other)
{
	refused("dynprobe --pid 1 --function f:return", DP_TAG_USAGE, "--probe");
	refused("dynprobe --pid 1 --function 'f:*'", DP_TAG_USAGE, "--probe");
	refused("dynprobe --pid 1 --return f:entry", DP_TAG_USAGE, "--probe");
	refused("dynprobe --pid 1 --return f+4", DP_TAG_USAGE, "offset");
}

Test(options, the_pid_of_dtrace_is_the_process)
{
	struct dp_options o = parsed("dynprobe --probe pid42::f:entry --probe pid42::g:entry");
	cr_assert_eq(o.trace.npids, 1);
	cr_expect_eq(o.trace.pid[0], 42);
	dp_options_fini(&o);
	refused("dynprobe --pid 1 --probe pid42::f:entry", DP_TAG_USAGE, "42");
	refused("dynprobe --probe pid1::f:entry --probe pid42::f:entry", DP_TAG_USAGE, "42");
	refused("dynprobe -c ls --probe pid42::f:entry", DP_TAG_USAGE, "42");
}

Test(options, all_is_every_process_and_the_entry_of_functions)
{
	struct dp_options o =
	        parsed("dynprobe --all 'libssl.so.3!SSL_write' --all 'libssl.so.3!SSL_read:return' --probe 'a!b+4'");
	cr_assert(o.trace.all && o.trace.follow && o.trace.no_trap && !o.trace.npids);
	cr_assert_eq(o.trace.nprobes, 3);
	cr_expect(o.trace.probe[0].entry && !o.trace.probe[1].entry && !o.trace.probe[2].entry);
	cr_expect_eq(o.trace.sink, DP_SINK_RING);
	dp_options_fini(&o);
	o = parsed("dynprobe -n 'pid*::malloc:entry'");
	cr_expect(o.trace.all && o.trace.probe[0].entry);
	dp_options_fini(&o);
	o = parsed("dynprobe --probe 'pid*:libc.so.6:free:entry'");
	cr_expect(o.trace.all);
	dp_options_fini(&o);
}

Test(options, all_excludes_single_processes_DP_USAGE)
{
	refused("dynprobe --all f --pid 1", DP_TAG_USAGE, "--pid");
	refused("dynprobe --probe 'pid*::f:entry' --pid 1", DP_TAG_USAGE, "--pid");
	refused("dynprobe --probe 'pid*::f:entry' --probe 'pid12::f:entry'", DP_TAG_USAGE, "--all");
	refused("dynprobe --all f -c true", DP_TAG_USAGE, "a command");
	refused("dynprobe --all f --program true", DP_TAG_USAGE, "--program");
	refused("dynprobe --all f --pending", DP_TAG_USAGE, "--pending");
	refused("dynprobe --all f --tactic trap", DP_TAG_USAGE, "--all");
	refused("dynprobe --all 0x1234", DP_TAG_USAGE, "single process");
	refused("dynprobe --all syscall:read", DP_TAG_USAGE, "system calls");
	refused("dynprobe --all /none/of/this.so!f", DP_TAG_NO_MODULE, "/none/of/this.so");
	refused("attach --probe 'pid*::f:entry'", DP_TAG_USAGE, "");
}

Test(options, probes_from_a_file)
{
	char path[] = "/tmp/dynprobe-probes-XXXXXX", line[200];
	int fd = mkstemp(path);
	FILE *file = fdopen(fd, "w");
	cr_assert(file);
	fputs("# places\n\nfoo\n  libc.so.6!puts+4  # with a reason\r\nbar:entry\n", file);
	fclose(file);
	snprintf(line, sizeof(line), "dynprobe --pid 1 --probe @%s -t reg:rax", path);
	struct dp_options o = parsed(line);
	cr_assert_eq(o.trace.nprobes, 3);
	cr_expect_str_eq(o.trace.probe[0].spec.text, "foo");
	cr_expect_str_eq(o.trace.probe[1].spec.text, "libc.so.6!puts+4");
	cr_expect(o.trace.probe[2].entry && o.trace.probe[0].fields.n == 1 && o.trace.probe[2].fields.n == 1);
	dp_options_fini(&o);
	file = fopen(path, "w");
	fputs("foo\nfoo+0x\n", file);
	fclose(file);
	struct dp_error *err = parse(line, &o);
	cr_assert(err && err->tag == DP_TAG_SYNTAX && strstr(err->message, "line 2"));
	dp_error_destroy(err);
	unlink(path);
	refused("dynprobe --pid 1 --probe @/nonexistent/list", DP_TAG_USAGE, "/nonexistent/list");
}
