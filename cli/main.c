/* SPDX-License-Identifier: MIT */
#include "cli/command.h"

#include <stdlib.h>
#include <string.h>

static void explain_tag(enum dp_tag tag)
{
	printf("%s\n  %s.\n  What to do: %s.\n", dp_tag_name(tag), dp_tag_meaning(tag), dp_tag_remedy(tag));
}

static int explain(int argc, char **argv)
{
	enum dp_tag tag;
	if (argc < 1) {
		for (int i = 0; i < DP_TAG_COUNT; i++)
			printf("%-18s %s\n", dp_tag_name((enum dp_tag)i), dp_tag_meaning((enum dp_tag)i));
		return 0;
	}
	if (!dp_tag_find(argv[0], &tag)) {
		fprintf(stderr, "dynprobe: error: there is no tag '%s'; dynprobe explain lists them all\n", argv[0]);
		return DP_EXIT_FAILURE;
	}
	explain_tag(tag);
	return 0;
}

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
		dp_options_help(verb, stdout);
	else if (options.version)
		puts("dynprobe " DP_VERSION);
	else
		status = dp_command_run(verb, &options);
	dp_options_fini(&options);
	return status;
}

int main(int argc, char **argv)
{
	enum dp_verb verb;
	if (argc > 1 && !strcmp(argv[1], "explain"))
		return explain(argc - 2, argv + 2);
	if (argc > 1 && !strcmp(argv[1], "completion")) {
		dp_options_completion(stdout);
		return 0;
	}
	if (argc > 1 && dp_verb_find(argv[1], &verb))
		return run_verb(verb, argc - 1, argv + 1);
	return run_verb(DP_VERB_RUN, argc, argv);
}
