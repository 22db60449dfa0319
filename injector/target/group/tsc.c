/* SPDX-License-Identifier: MIT */
/*
 * Detects prctl(PR_SET_TSC, PR_TSC_SIGSEGV): in such a thread rdtsc faults. A probe reads the time stamp counter at each hit.
 *
 * Only the thread itself can query this, so the first borrowed thread does, with the first memory we map in the target. If it was
 * set before there were other threads, it holds for all: threads and forks inherit it. (So does exec, but glibc's loader reads
 * the counter itself.) A thread that sets it for itself alone is not detected.
 */
#include "injector/target/target.h"

#include <linux/prctl.h>
#include <sys/syscall.h>

struct dp_error *dp_tsc_check(struct dp_target *t, struct dp_borrow *b)
{
	const uint64_t at = dp_script_room(&t->in) + sizeof(uint64_t); /* the first word says whether it is in use */
	int64_t got = 0;
	int is = PR_TSC_ENABLE;
	DP_TRY(dp_remote_syscall(b, SYS_prctl, (const uint64_t[6]){PR_GET_TSC, at}, &got));
	if (got || dp_mem_read(&t->process, dp_addr_of(at), &is, sizeof(is)) != sizeof(is) || is != PR_TSC_SIGSEGV)
		return NULL;
	return dp_error(DP_TAG_TSC,
	                "thread %d of process %d (%s) cannot read the time stamp counter (PR_SET_TSC), which probes need",
	                dp_borrow_tid(b), t->process.pid, t->process.comm);
}
