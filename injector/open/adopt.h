/* SPDX-License-Identifier: MIT */
/* Targets that have just executed their program (tracee/exec/exec_catch.h). */
#ifndef DP_INJECTOR_OPEN_ADOPT_H
#define DP_INJECTOR_OPEN_ADOPT_H

#include "injector/injector.h"
#include "injector/tracee/tracee.h"

/*
 * Opens a process that is held at its program's entry point. Takes `launch` over: an error releases the process. The target is
 * like a launched command's until dp_target_release(), but closing it releases the process instead of ending it.
 */
struct dp_error *dp_target_adopt(struct dp_launch *launch, pid_t pid, const struct dp_target_options *options,
                                 struct dp_target **ret) DP_MUST_CHECK;

/* Its process executes another program, which is to be opened: this target keeps nobody from that any more. */
void dp_target_yield(struct dp_target *t);

#endif
