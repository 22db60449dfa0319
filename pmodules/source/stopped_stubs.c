/* SPDX-License-Identifier: MIT */
/*
 * Threads in dynprobe's own code, when the process has probes. A pc in a stub that corresponds to one in the program (a displaced
 * instruction) is shown as that. Elsewhere, this thread alone is released briefly until it has left the stub; stubs are short. If
 * it does not leave, it is shown at the probed instruction.
 */
#include "pmodules/source/stopped_internal.h"

#include "base/cleanup.h"
#include "injector/tracee/stop/freeze.h"

#include <string.h>
#include <sys/ptrace.h>
#include <time.h>

#define NUDGES   64
#define STEP_NS  5000
#define NUDGE_NS UINT64_C(10000000)  /* for all threads together: the others are stopped meanwhile */
#define STOP_NS  UINT64_C(50000000)  /* for one stop, which needs a processor: the limit of what the others wait for it */

/*
 * Mappings of aio and io_uring rings, and of RDMA adapters. Data that arrives during a fork may go to the child's copy of the
 * page and be lost to the program: open(2) on O_DIRECT, ibv_fork_init(3).
 */
static bool has_devices(const char *maps)
{
	return strstr(maps, " /[aio]") || strstr(maps, " anon_inode:[io_uring]") || strstr(maps, " /dev/infiniband/");
}

/* Reads the current state: another dynprobe may add and remove stubs. */
struct dp_error *dp_stopped_stubs_find(struct dp_stopped *s)
{
	dp_auto_free char *maps = NULL;
	dp_stub_map_fini(&s->visible);
	DP_TRY(dp_process_maps(&s->target.process, &maps));
	s->has_devices = has_devices(maps);
	return strstr(maps, "/memfd:" DP_MEMFD_NAME " ") ? dp_stub_map_read(s->target.process.pid, &s->visible) : NULL;
}

static bool is_ours(const struct dp_stopped *s, uint64_t pc)
{
	for (size_t i = 0; i < s->visible.ncode; i++)
		if (pc - s->visible.code[i].start < s->visible.code[i].size)
			return true;
	return false;
}

static bool has_pair(const struct dp_stopped *s, struct dp_held *h)
{
	for (size_t i = 0; i < s->visible.nstubs; i++) {
		const struct dp_stub_map_stub *stub = &s->visible.stub[i];
		for (size_t k = 0; k < stub->npairs; k++)
			if (stub->pair[k].stub == h->regs.rip)
				return true;
	}
	return false;
}

/* Lets the thread run a little, then stops it again. A thread that exits is no longer stopped. */
static struct dp_error *nudge(const struct dp_stopped *s, struct dp_held *h)
{
	if (ptrace(PTRACE_CONT, h->tid, NULL, (void *)(long)h->pending_signal) != 0)
		return NULL;
	h->stopped = false;
	nanosleep(&(struct timespec){.tv_nsec = STEP_NS}, NULL);
	ptrace(PTRACE_INTERRUPT, h->tid, NULL, NULL);
	/* The interrupt must be consumed. */
	const uint64_t most = dp_now_ns() + STOP_NS;
	const struct dp_stop stop = dp_stop_wait(h->tid, most < s->until_ns ? most : s->until_ns);
	if (stop.kind == DP_STOP_NONE) /* without this thread the snapshot would not be of one moment */
		return dp_unstoppable(&s->target.process, h->tid);
	dp_held_take(h, stop);
	return stop.kind == DP_STOP_EXEC
	               ? dp_error(DP_TAG_GONE, "process %d (%s) called exec", s->target.process.pid, s->target.process.comm)
	               : NULL;
}

static bool is_to_leave(const struct dp_stopped *s, struct dp_held *h)
{
	return h->stopped && !h->group_stopped && !h->in_syscall_stop && is_ours(s, h->regs.rip) && !has_pair(s, h);
}

/* Does not change the threads' registers. dp_stopped_stubs_show() changes what is shown. */
struct dp_error *dp_stopped_stubs_leave(struct dp_stopped *s)
{
	const uint64_t end = dp_now_ns() + NUDGE_NS;
	for (size_t i = 0; i < s->freeze.n && s->visible.ncode; i++) {
		struct dp_held *h = &s->freeze.thread[i];
		for (int n = 0; n < NUDGES && is_to_leave(s, h) && dp_now_ns() < end && dp_now_ns() < s->until_ns; n++)
			DP_TRY(nudge(s, h));
	}
	return NULL;
}

/* One of our int3s was hit, but its SIGTRAP is still pending: not a fault; the thread is at the probe. */
static bool show_trap(const struct dp_stopped *s, struct dp_stopped_thread *t)
{
	if (t->siginfo.si_signo != SIGTRAP || t->siginfo.si_code != SI_KERNEL)
		return false;
	for (size_t i = 0; i < s->visible.nstubs; i++)
		if (s->visible.stub[i].site == t->regs.rip - 1) {
			t->regs.rip--;
			t->siginfo = (siginfo_t){0};
			t->is_fault = false;
			return true;
		}
	return false;
}

void dp_stopped_stubs_show(const struct dp_stopped *s, struct dp_stopped_thread *t)
{
	if (show_trap(s, t))
		return;
	for (size_t i = 0; i < s->visible.nstubs; i++) {
		const struct dp_stub_map_stub *stub = &s->visible.stub[i];
		for (size_t k = 0; k < stub->npairs; k++)
			if (stub->pair[k].stub == t->regs.rip) {
				t->regs.rip = stub->pair[k].original;
				if (stub->pair[k].fix_rcx)
					t->regs.rcx = stub->pair[k].original;
				return;
			}
	}
	for (size_t i = 0; i < s->visible.nstubs; i++)
		if (t->regs.rip - s->visible.stub[i].start < s->visible.stub[i].n) {
			t->regs.rip = s->visible.stub[i].site;
			return;
		}
}
