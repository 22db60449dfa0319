/* SPDX-License-Identifier: MIT */
/* The program's system calls that need a hook while the agent's signal handler is installed (decision 0016). */
#ifndef DP_SESSION_CODE_HOOKS_H
#define DP_SESSION_CODE_HOOKS_H

#include "session/code/code_view.h"
#include "injector/injector.h"

struct dp_hooks {
	struct dp_hook_place *place;
	struct dp_text *text; /* for each hook, its function; the planner's requests point here */
	size_t n;
};

void dp_hooks_fini(struct dp_hooks *hooks);
/* Searches the code of every module. DP_TAG_TRAP_UNSAFE if a system call site cannot be analysed. */
struct dp_error *dp_hooks_find(struct dp_image *image, struct dp_hooks *hooks) DP_MUST_CHECK;
/* Before the plan: a probe is at `addr`, whose hits no hook may skip. */
void dp_hooks_keep(struct dp_hooks *hooks, uint64_t addr);
/* Plans all hooks; they call `entry`. `hooks` must outlive the planner. */
struct dp_error *dp_hooks_plan(struct dp_hooks *hooks, struct dp_image *image, struct dp_planner *planner,
                               struct dp_code_view *view, uint64_t entry) DP_MUST_CHECK;

#endif
