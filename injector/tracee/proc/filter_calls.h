/* SPDX-License-Identifier: MIT */
/* The system calls that dynprobe makes in a process. Private to injector/tracee/proc/. */
#ifndef DP_INJECTOR_TRACEE_PROC_FILTER_CALLS_H
#define DP_INJECTOR_TRACEE_PROC_FILTER_CALLS_H

#include "injector/tracee/proc/filter.h"
#include "injector/tracee/proc/filter_bpf.h"

struct dp_own_call {
	enum dp_calls kind;
	const char *name;
	bool may_fail; /* dynprobe does without the call if it returns an error */
	struct dp_bpf_call call;
};
extern const struct dp_own_call dp_own_calls[];
extern const size_t dp_nown_calls;

#endif
