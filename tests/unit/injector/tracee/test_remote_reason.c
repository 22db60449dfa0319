/* SPDX-License-Identifier: MIT */
/* A call that failed in the target says what helps against its reason, and not what helps against others. */
#include "injector/tracee/tracee.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

static void expect(struct dp_error *err, const char *message, const char *remedy)
{
	cr_expect_eq(err->tag, DP_TAG_REMOTE);
	cr_expect(strstr(err->message, message), "%s", err->message);
	cr_expect(strstr(dp_error_remedy(err), remedy), "%s: %s", err->message, dp_error_remedy(err));
	dp_error_destroy(err);
}

Test(remote_reason, what_helps_against_a_refusal_depends_on_its_reason)
{
	static const struct {
		int sys;
		const char *remedy;
	} row[] = {
	        {EMFILE, "prlimit --nofile"}, {ENFILE, "fs.file-max"},     {ENOMEM, "memory.max"}, {EAGAIN, "prlimit --memlock"},
	        {EPERM, "security policy"},   {EACCES, "security policy"}, {ENOSYS, "newer"},      {EINVAL, "dynprobe doctor"}};
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct dp_error *err = dp_remote_refused(row[i].sys, "%s in the target", "mmap");
		cr_expect_eq(err->sys, row[i].sys);
		cr_expect_null(strstr(dp_error_remedy(err), "try again"), "%s: it will not help: %s", err->message,
		               dp_error_remedy(err));
		cr_expect(strstr(err->message, strerror(row[i].sys)), "%s", err->message);
		expect(err, "mmap in the target: ", row[i].remedy);
	}
}

Test(remote_reason, what_was_interrupted_may_be_tried_again)
{
	expect(dp_remote_unfinished("%s in the target was interrupted", "mmap"), "mmap in the target was interrupted",
	       "try again: ");
}

Test(remote_reason, only_what_was_interrupted_is_unfinished)
{
	struct dp_error *row[] = {dp_remote_refused(EMFILE, "mmap"), dp_remote_stuck(12, "server", 14),
	                          dp_error(DP_TAG_REMOTE, "no remedy"),
	                          dp_error_wrap(dp_remote_unfinished("mmap"), "cannot map")};
	cr_expect_not(dp_remote_is_unfinished(NULL));
	for (size_t i = 0; i < 4; i++) {
		cr_expect_eq(dp_remote_is_unfinished(row[i]), i == 3, "%s", row[i]->message);
		dp_error_destroy(row[i]);
	}
}

Test(remote_reason, a_call_that_does_not_return_names_its_thread)
{
	expect(dp_remote_stuck(12, "server", 14), "thread 14 of process 12 (server)", "wchan");
}
