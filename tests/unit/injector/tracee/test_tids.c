/* SPDX-License-Identifier: MIT */
/* An error while threads are listed does not mean that the process has ended. */
#include "injector/tracee/proc/proc.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

Test(tids, own_threads)
{
	struct dp_tids tids;
	cr_assert(dp_proc_tids(getpid(), &tids));
	cr_expect_geq(tids.n, 1);
	cr_expect_eq(tids.tid[0], getpid());
	free(tids.tid);
}

Test(tids, a_process_that_does_not_exist_has_none)
{
	struct dp_tids tids;
	cr_assert(dp_proc_tids(0x7ffffff0, &tids));
	cr_expect_eq(tids.n, 0);
}

Test(tids, without_descriptors_they_are_unknown)
{
	struct rlimit was, none = {0};
	struct dp_tids tids;
	cr_assert(!getrlimit(RLIMIT_NOFILE, &was));
	none.rlim_max = was.rlim_max;
	setrlimit(RLIMIT_NOFILE, &none);
	const bool known = dp_proc_tids(getpid(), &tids);
	setrlimit(RLIMIT_NOFILE, &was); /* Criterion needs some */
	cr_expect_not(known);
}

struct visits {
	bool own, after;
};

static bool until_own(pid_t pid, void *data)
{
	struct visits *v = data;
	v->after = v->own;
	v->own |= pid == getpid();
	return !v->own;
}

Test(tids, processes_are_visited_until_told_to_stop)
{
	struct visits v = {0};
	cr_assert(dp_proc_each(until_own, &v));
	cr_expect(v.own);
	cr_expect_not(v.after);
}
