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

static uint64_t answer_at(const struct dp_target *t)
{
	return dp_script_room(&t->in) + DP_SCRIPT_ROOM - sizeof(uint64_t); /* behind every script's table */
}

struct dp_step dp_tsc_step(const struct dp_target *t)
{
	return (struct dp_step){.nr = SYS_prctl, .args = {PR_GET_TSC, answer_at(t)}};
}

struct dp_error *dp_tsc_check(struct dp_target *t, const struct dp_borrow *b, const struct dp_step *step)
{
	int is = PR_TSC_ENABLE;
	if (!step->made || step->got || dp_mem_read(&t->process, dp_addr_of(answer_at(t)), &is, sizeof(is)) != sizeof(is) ||
	    is != PR_TSC_SIGSEGV)
		return NULL;
	return dp_error(DP_TAG_TSC,
	                "thread %d of process %d (%s) cannot read the time stamp counter (PR_SET_TSC), which probes need",
	                dp_borrow_tid(b), t->process.pid, t->process.comm);
}
