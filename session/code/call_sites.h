/* SPDX-License-Identifier: MIT */
/* The places where a target's files make system calls. */
#ifndef DP_SESSION_CODE_CALL_SITES_H
#define DP_SESSION_CODE_CALL_SITES_H

#include "session/code/code_view.h"
#include "session/trace_spec.h"

struct dp_syscall_site {
	struct dp_function function;
	uint64_t entry, exit;
	int32_t nr; /* or DP_CALL_ANY: the place makes more than one call */
	bool kept, no_exit; /* the place, or what is behind it, carries no probe (dp_text_kept()) */
};
struct dp_call_sites {
	struct dp_syscall_site *item; /* by number, then by address; those of any number last */
	size_t n, capacity;
	size_t unknown; /* places that look like system calls, in code of which nothing is known */
};
/* In the modules that `spec` names. */
struct dp_error *dp_call_sites_find(const struct dp_trace_spec *trace, struct dp_image *image, struct dp_code_view *view, const struct dp_spec *spec,
                                    struct dp_call_sites *ret) DP_MUST_CHECK;
void dp_call_sites_fini(struct dp_call_sites *sites);

#endif
