/* SPDX-License-Identifier: MIT */
/*
 * prctl(PR_SET_TSC, PR_TSC_SIGSEGV): a thread for which rdtsc is a fault. A probe reads the time stamp counter at each hit.
 *
 * A thread can only ask for itself, so the one that works for us first is asked, with the first memory that we have there. What
 * holds for one holds for all where it was set before there were others: threads and forks inherit it. (So does exec, but glibc's
 * loader reads the counter itself.) One that sets it for itself alone is not seen.
 */
#include "injector/target/target.h"

#include <linux/prctl.h>
#include <sys/syscall.h>

struct dp_error *dp_tsc_check(struct dp_target *t, struct dp_borrow *b)
{
	const uint64_t at = dp_script_room(&t->in) + sizeof(uint64_t); /* its first word says whether it is in use */
	int64_t got = 0;
	int is = PR_TSC_ENABLE;
	DP_TRY(dp_remote_syscall(b, SYS_prctl, (const uint64_t[6]){PR_GET_TSC, at}, &got));
	if (got || dp_mem_read(&t->process, dp_addr_of(at), &is, sizeof(is)) != sizeof(is) || is != PR_TSC_SIGSEGV)
		return NULL;
	return dp_error(DP_TAG_TSC, "thread %d of process %d (%s) must not read the time stamp counter, which probes do",
	                dp_borrow_tid(b), t->process.pid, t->process.comm);
}
