/* SPDX-License-Identifier: MIT */
/*
 * Reads filters with PTRACE_SECCOMP_GET_FILTER (kernels with CONFIG_CHECKPOINT_RESTORE; the caller needs CAP_SYS_ADMIN in the
 * first user namespace, and no filter of its own). A filter can be added to a thread, never changed or removed.
 */
#include "injector/tracee/proc/filter.h"
#include "injector/tracee/proc/filter_bpf.h"
#include "injector/tracee/proc/filter_calls.h"
#include "injector/tracee/proc/proc.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>

#define FILTERS_MOST 1024u /* the kernel's limit is lower: 32768 instructions, 4 more for each filter */

#ifndef PTRACE_SECCOMP_GET_FILTER
#define PTRACE_SECCOMP_GET_FILTER 0x420c
#endif

static void name_action(uint32_t action, char *ret, size_t n)
{
	const unsigned data = action & SECCOMP_RET_DATA;
	switch (action == DP_BPF_UNSURE ? action : action & SECCOMP_RET_ACTION_FULL) {
	case SECCOMP_RET_KILL_PROCESS:
		snprintf(ret, n, "kills the process");
		break;
	case SECCOMP_RET_KILL_THREAD:
		snprintf(ret, n, "kills the thread");
		break;
	case SECCOMP_RET_TRAP:
		snprintf(ret, n, "sends SIGSYS");
		break;
	case SECCOMP_RET_ERRNO:
		snprintf(ret, n, "fails with errno %u", data);
		break;
	case SECCOMP_RET_TRACE:
		snprintf(ret, n, "goes to a tracer");
		break;
	case SECCOMP_RET_USER_NOTIF:
		snprintf(ret, n, "goes to a supervisor");
		break;
	default:
		snprintf(ret, n, "depends on its addresses");
	}
}

static bool passes(uint32_t action, bool may_fail)
{
	const uint32_t kind = action & SECCOMP_RET_ACTION_FULL;
	if (action == DP_BPF_UNSURE)
		return false;
	return kind == SECCOMP_RET_ALLOW || kind == SECCOMP_RET_LOG || (may_fail && kind == SECCOMP_RET_ERRNO);
}

static void judge_call(const struct sock_filter *filter, size_t n, const struct dp_own_call *own, struct dp_filter_verdict *ret)
{
	char action[40];
	const uint32_t got = dp_bpf_worst(filter, n, &own->call);
	if (ret->forbids[own->kind][0] || passes(got, own->may_fail))
		return;
	name_action(got, action, sizeof(action));
	snprintf(ret->forbids[own->kind], sizeof(ret->forbids[0]), "%s %s", own->name, action);
}

static void judge(const struct sock_filter *filter, size_t n, struct dp_filter_verdict *ret)
{
	for (size_t i = 0; i < dp_nown_calls; i++)
		judge_call(filter, n, &dp_own_calls[i], ret);
}

/* False after the last one, or on an error. */
static bool judge_nth(pid_t tid, size_t nth, struct dp_filter_verdict *ret)
{
	const long n = ptrace(PTRACE_SECCOMP_GET_FILTER, tid, (void *)nth, NULL);
	struct sock_filter *filter = n > 0 ? calloc((size_t)n, sizeof(*filter)) : NULL;
	const bool got = filter && ptrace(PTRACE_SECCOMP_GET_FILTER, tid, (void *)nth, filter) == n;
	if (got)
		judge(filter, (size_t)n, ret);
	else if (errno != ENOENT || filter || nth == 0)
		ret->unreadable = errno ? errno : EIO;
	free(filter);
	return got;
}

void dp_filter_judge(pid_t tid, struct dp_filter_verdict *ret)
{
	for (size_t nth = 0; nth < FILTERS_MOST; nth++)
		if (!judge_nth(tid, nth, ret))
			return;
	ret->unreadable = E2BIG;
}

bool dp_filter_readable(void)
{
	struct dp_buf status;
	dp_buf_init(&status);
	const bool read = dp_proc_slurp(&status, "/proc/self/status");
	const char *caps = read ? dp_status_find(dp_buf_str(&status), "CapEff") : NULL;
	const bool may =
	        caps && strtoull(caps, NULL, 16) >> CAP_SYS_ADMIN & 1u && !dp_status_long(dp_buf_str(&status), "Seccomp", 1);
	dp_buf_fini(&status);
	return may;
}

const char *dp_filter_forbids(const struct dp_process *p, enum dp_calls kind)
{
	if (!p->filtered)
		return NULL;
	if (p->seccomp_strict)
		return "strict seccomp mode";
	if (!p->judged)
		return "a seccomp filter that dynprobe has not read";
	return p->filter.forbids[kind][0] ? p->filter.forbids[kind] : NULL;
}

void dp_filter_take(struct dp_process *p, const struct dp_filter_verdict *all)
{
	p->filter = *all;
	p->judged = !all->unreadable;
	p->seccomp = dp_filter_forbids(p, DP_CALLS_ATTACH) != NULL;
}

unsigned dp_filter_count(const char *status)
{
	return dp_status_long(status, "Seccomp", 0) ? (unsigned)dp_status_long(status, "Seccomp_filters", 1) : 0;
}

bool dp_filter_is_new(const struct dp_process *p, const char *status)
{
	const unsigned n = dp_filter_count(status);
	return n && n != p->filters;
}
