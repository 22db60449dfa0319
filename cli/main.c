/* SPDX-License-Identifier: MIT */
#include "base/descriptors.h"
#include "cli/commands/command.h"
#include "cli/options/rfc_words.h"
#include "cli/run/console.h"
#include "cli/run/signals.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int failed(struct dp_error *err)
{
	dp_error_print(err, stderr);
	dp_error_destroy(err);
	return DP_EXIT_FAILURE;
}

static int run_verb(enum dp_verb verb, int argc, char **argv)
{
	struct dp_options options;
	struct dp_error *err = dp_options_parse_verb(verb, argc, argv, &options);
	int status = 0;
	if (err)
		return failed(err);
	if (options.help)
		err = dp_options_help(verb, options.topic, stdout);
	else if (options.version)
		puts("dynprobe " DP_VERSION);
	else {
		struct dp_trace_calls calls;
		dp_console_calls(&options, &calls);
		options.trace.calls = &calls;
		status = dp_command_run(verb, &options);
	}
	status = err ? failed(err) : status;
	dp_options_fini(&options);
	return status;
}

/* help [TOPIC], where a topic may also be an error's tag. */
static int help(char **words)
{
	enum dp_tag tag;
	if (*words && !strncasecmp(*words, "DP-", 3) && dp_tag_find(*words, &tag))
		return dp_command_explain(words);
	struct dp_error *err = dp_options_help(DP_VERB_RUN, *words, stdout);
	return err ? failed(err) : 0;
}

static int run(int argc, char **argv)
{
	enum dp_verb verb;
	if (argc > 1 && !strcmp(argv[1], "help"))
		return help(argv + 2);
	if (argc > 1 && dp_verb_find(argv[1], &verb))
		return run_verb(verb, argc - 1, argv + 1);
	return run_verb(DP_VERB_RUN, argc, argv);
}

int main(int argc, char **argv)
{
	char **owned;
	dp_descriptors_occupy_standard();
	dp_descriptors_raise();
	dp_signals_tell_of_kill();
	if (argc > 1 && !strcmp(argv[1], "explain"))
		return dp_command_explain(argv + 2);
	if (argc > 1 && !strcmp(argv[1], "completion"))
		return dp_command_completion(argv + 2);
	struct dp_error *err = dp_rfc_words(&argc, &argv, &owned);
	const int status = err ? failed(err) : run(argc, argv);
	free(owned);
	return status;
}
