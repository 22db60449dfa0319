/* SPDX-License-Identifier: MIT */
/* Finds the system call sites in the code of a target's modules. */
#ifndef DP_SESSION_CODE_CALL_SITES_H
#define DP_SESSION_CODE_CALL_SITES_H

#include "session/code/code_view.h"
#include "session/trace_spec.h"

struct dp_syscall_site {
	struct dp_function function;
	uint64_t entry, exit;
	int32_t nr;         /* or DP_CALL_ANY: the site makes more than one call */
	bool kept, no_exit; /* the site, or the address after the call, must not be probed (dp_text_protected()) */
	bool joined;        /* code that makes no call leads to that address, too */
};
struct dp_call_sites {
	struct dp_syscall_site *item; /* sorted by number, then address; DP_CALL_ANY last */
	size_t n, capacity;
	size_t unknown; /* places that look like system calls, outside of all known functions */
};
/* Searches the modules that `spec` names. */
struct dp_error *dp_call_sites_find(const struct dp_trace_spec *trace, struct dp_image *image, struct dp_code_view *view,
                                    const struct dp_spec *spec, struct dp_call_sites *ret) DP_MUST_CHECK;
void dp_call_sites_fini(struct dp_call_sites *sites);

#endif
