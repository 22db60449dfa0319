/* SPDX-License-Identifier: MIT */
#include "helper_output.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char *default_dir(const char *name)
{
	char *dir = NULL;
	must(dp_ctf_default_dir(name, &dir));
	return dir;
}

Test(default_dir, lies_where_lttng_keeps_traces)
{
	setenv("HOME", "/home/someone", 1);
	unsetenv("LTTNG_HOME");
	char *dir = default_dir("server");
	cr_assert_eq(strncmp(dir, "/home/someone/lttng-traces/dynprobe-server-20", 45), 0, "%s", dir);
	cr_assert_eq(strlen(dir), strlen("/home/someone/lttng-traces/dynprobe-server-YYYYMMDD-HHMMSS"));
	free(dir);
	setenv("LTTNG_HOME", "/elsewhere", 1);
	dir = default_dir("server");
	cr_assert_eq(strncmp(dir, "/elsewhere/lttng-traces/", 24), 0, "%s", dir);
	free(dir);
}

Test(default_dir, odd_program_names_stay_in_the_directory)
{
	setenv("LTTNG_HOME", "/elsewhere", 1);
	char *dir = default_dir("../a b/\033c");
	cr_assert_not_null(strstr(dir, "/lttng-traces/dynprobe-.._a_b__c-"), "%s", dir);
	free(dir);
}

Test(default_dir, existing_directory_gets_a_number)
{
	char *home = make_dir();
	bool numbered = false;
	setenv("LTTNG_HOME", home, 1);
	/* Needs two directories in the same second; the second may change between them, so it tries several times. */
	for (int i = 0; i < 3; i++) {
		char *dir = default_dir("x"), *command = NULL;
		int status;
		cr_assert_geq(asprintf(&command, "mkdir -p '%s'", dir), 0);
		free(run(&status, "%s", command));
		char *next = default_dir("x");
		struct stat st;
		cr_assert_neq(stat(next, &st), 0, "%s is free", next);
		numbered |= !strcmp(next + strlen(next) - 2, "-2") && !strncmp(next, dir, strlen(dir));
		free(dir);
		free(next);
		free(command);
	}
	cr_assert(numbered);
	remove_tree(home);
}
