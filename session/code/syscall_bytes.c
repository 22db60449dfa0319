/* SPDX-License-Identifier: MIT */
#include "session/code/syscall_bytes.h"

#include "trampoline/trampoline.h"

struct dp_error *dp_syscall_bytes(struct dp_module *m, dp_syscall_bytes_fn each, void *data)
{
	for (size_t i = 0; i < dp_module_nsegments(m); i++) {
		dp_addr addr;
		const uint8_t *bytes, *at;
		size_t n;
		bool exec;
		if (!dp_module_segment(m, i, &addr, &bytes, &n, &exec) || !exec)
			continue;
		for (at = bytes; (at = dp_find_syscall(at, bytes + n)); at++)
			DP_TRY(each(m, addr.v + (uint64_t)(at - bytes), data));
	}
	return NULL;
}
