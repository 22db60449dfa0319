/* SPDX-License-Identifier: MIT */
/* What a user reads before the kernel ends a tool that is stuck, and where it cannot. */
#include "cli/run/signals.h"
#include "injector/tracee/stop/watchdog.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static char text[512];
static int ends[2];

static void listen_to(void)
{
	cr_assert_not(pipe(ends));
	cr_assert_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
	dp_signals_tell_of_kill();
}

Test(kill_told, names_what_is_held_and_what_comes, .init = listen_to)
{
	dp_watchdog_last_word("all threads of the program");
	cr_assert_gt(read(ends[0], text, sizeof(text) - 1), 0);
	cr_expect_str_eq(text,
	                 "dynprobe: error: stuck while it holds all threads of the program: "
	                 "it is killed in a moment if that does not end, so that the program goes on; please report this\n");
}

Test(kill_told, says_once_that_nothing_guards_the_program, .init = listen_to)
{
	const struct rlimit none = {0};
	cr_assert_not(setrlimit(RLIMIT_SIGPENDING, &none));
	for (int i = 0; i < 3; i++) {
		dp_watchdog_start("a thread of the program");
		dp_watchdog_stop();
	}
	cr_assert_gt(read(ends[0], text, sizeof(text) - 1), 0);
	cr_expect(strstr(text, "dynprobe: the kernel gives dynprobe no timer (RLIMIT_SIGPENDING)") == text);
	cr_expect_eq(strchr(text, '\n'), text + strlen(text) - 1, "%s", text);
}
