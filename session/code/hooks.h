/* SPDX-License-Identifier: MIT */
/* The program's system calls that need a hook while the agent's handler stands (decision 0016). */
#ifndef DP_SESSION_CODE_HOOKS_H
#define DP_SESSION_CODE_HOOKS_H

#include "session/code/code_view.h"
#include "injector/injector.h"

struct dp_hooks {
	struct dp_hook_place *place;
	struct dp_text *text; /* of each hook's function: requests have to live as long as the planner */
	size_t n;
};

void dp_hooks_fini(struct dp_hooks *hooks);
/* Looks through the code of every module. DP_TAG_TRAP_UNSAFE if a system call cannot be told. */
struct dp_error *dp_hooks_find(struct dp_image *image, struct dp_hooks *hooks) DP_MUST_CHECK;
/* Plans them all; `entry` is what they call. */
struct dp_error *dp_hooks_plan(struct dp_hooks *hooks, struct dp_image *image, struct dp_planner *planner, struct dp_code_view *view,
                               uint64_t entry) DP_MUST_CHECK;

#endif
