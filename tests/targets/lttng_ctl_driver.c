/* SPDX-License-Identifier: MIT */
/*
 * lttng_ctl_driver: calls the functions of output/lttng/lttng.h by its arguments, for tests of session control alone.
 *
 *   lttng_ctl_driver [--OPTION VALUE]... VERB [ARGUMENT]...
 *   options: timeout MS, session, set-url, output, live US, channel, per-pid 1, subbuf BYTES, name, filter
 *   verbs: current, open, enable NAME,NAME, disable NAME,NAME, context NAME, start, listed PID NAME,NAME MS, wait (for a line on
 *          standard input), close, destroy
 * Each verb prints one line. The first error is printed as dynprobe prints it, and ends the program with status 1.
 */
#include "output/lttng/lttng.h"

#include <stdlib.h>
#include <string.h>

enum { NAMES_MAX = 64 };

static struct dp_lttng_options options = {.timeout_ns = UINT64_C(20000000000), .name = "driver"};
static const char *filter;
static struct dp_lttng *lttng;

static size_t split(char *list, const char *names[NAMES_MAX])
{
	size_t n = 0;
	for (char *name = strtok(list, ","); name && n < NAMES_MAX; name = strtok(NULL, ","))
		names[n++] = name;
	return n;
}

static void set_option(const char *name, const char *value)
{
	if (!strcmp(name, "--timeout"))
		options.timeout_ns = strtoull(value, NULL, 0) * 1000000u;
	else if (!strcmp(name, "--session"))
		options.session = value;
	else if (!strcmp(name, "--set-url"))
		options.set_url = value;
	else if (!strcmp(name, "--output"))
		options.output = value;
	else if (!strcmp(name, "--live"))
		options.live_us = strtoull(value, NULL, 0);
	else if (!strcmp(name, "--channel"))
		options.channel = value;
	else if (!strcmp(name, "--per-pid"))
		options.per_pid = true;
	else if (!strcmp(name, "--subbuf"))
		options.subbuf_size = strtoull(value, NULL, 0);
	else if (!strcmp(name, "--name"))
		options.name = value;
	else if (!strcmp(name, "--filter"))
		filter = value;
}

static struct dp_error *say_current(void)
{
	char *session = NULL;
	bool covers = false;
	DP_TRY(dp_lttng_current(&session, NULL, 0, &covers, options.timeout_ns));
	printf("current %s %d\n", session ? session : "-", covers);
	free(session);
	return NULL;
}

static void say_state(const char *verb)
{
	printf("%s session=%s created=%d active=%d where=%s view=%s\n", verb, dp_lttng_session(lttng), dp_lttng_created(lttng),
	       dp_lttng_active(lttng), dp_lttng_where(lttng), dp_lttng_how_to_view(lttng));
}

static void say_listed(char ***argv)
{
	const char *names[NAMES_MAX];
	const pid_t pid = atoi(*++*argv);
	const size_t n = split(*++*argv, names);
	const bool listed = dp_lttng_wait_listed(lttng, pid, names, n, strtoull(*++*argv, NULL, 0) * 1000000u);
	printf("listed %d\n", listed);
}

static void await_line(void)
{
	char line[64];
	puts("waiting");
	if (!fgets(line, sizeof(line), stdin))
		exit(2);
}

static struct dp_error *run(char ***argv)
{
	const char *verb = **argv, *names[NAMES_MAX];
	struct dp_error *err = NULL;
	if (!strcmp(verb, "current"))
		return say_current();
	if (!strcmp(verb, "wait"))
		await_line();
	else if (!strcmp(verb, "listed"))
		say_listed(argv);
	else if (!strcmp(verb, "enable"))
		err = dp_lttng_enable(lttng, names, split(*++*argv, names), filter);
	else if (!strcmp(verb, "disable"))
		err = dp_lttng_disable(lttng, names, split(*++*argv, names));
	else if (!strcmp(verb, "context"))
		err = dp_lttng_add_context(lttng, *++*argv);
	else if (!strcmp(verb, "open"))
		err = dp_lttng_open(&options, &lttng);
	else if (!strcmp(verb, "start"))
		err = dp_lttng_start(lttng);
	else if (!strcmp(verb, "close") || !strcmp(verb, "destroy")) {
		struct dp_lttng *l = lttng;
		lttng = NULL;
		err = dp_lttng_close(l, *verb == 'd');
	}
	if (!err && lttng)
		say_state(verb);
	return err;
}

int main(int argc, char **argv)
{
	(void)argc;
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (argv++; argv[0] && argv[1] && !strncmp(argv[0], "--", 2); argv += 2)
		set_option(argv[0], argv[1]);
	for (; *argv; argv++) {
		struct dp_error *err = run(&argv);
		if (!err)
			continue;
		dp_error_print(err, stdout);
		dp_error_destroy(err);
		dp_lttng_release(lttng);
		return 1;
	}
	dp_lttng_release(lttng);
	return 0;
}
