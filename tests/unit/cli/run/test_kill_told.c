/* SPDX-License-Identifier: MIT */
/* What a user reads before the kernel ends a tool that is stuck. */
#include "cli/run/signals.h"
#include "injector/tracee/stop/watchdog.h"

#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

Test(kill_told, names_what_is_held_and_what_comes)
{
	char text[256] = "";
	int ends[2];
	cr_assert_not(pipe(ends));
	cr_assert_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
	dp_signals_tell_of_kill();
	dp_watchdog_last_word("all threads of the program");
	cr_assert_gt(read(ends[0], text, sizeof(text) - 1), 0);
	cr_expect_str_eq(text,
	                 "dynprobe: error: stuck while it holds all threads of the program: "
	                 "it is killed in a moment if that does not end, so that the program goes on; please report this\n");
}
