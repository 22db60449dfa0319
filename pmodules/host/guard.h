/* SPDX-License-Identifier: MIT */
/* Protection of the tool (and of the process that it may hold) against modules in C: guard.c. */
#ifndef DP_PMODULES_GUARD_H
#define DP_PMODULES_GUARD_H

#include "pmodules/host/host_internal.h"

#include <link.h>

struct dp_guard_text { /* where the module's own code is */
	uintptr_t start, end;
};
/*
 * Runs fn(data) of module m. An error if it crashed (m->is_broken: never call it again) or did not come back before
 * m->deadline_ns.
 */
struct dp_error *dp_guard_run(struct pmodule *m, const struct dp_guard_text *text, void (*fn)(void *data),
                              void *data) DP_MUST_CHECK;
void dp_guard_off(void);
/* Ends the call that runs on this thread as a crash in the module's own code does; returns if none runs here. `how`: "exit()". */
void dp_guard_leave(const char *how);

/* guard_exit.c. Before modules are opened: whoever ends dynprobe by exit() is named, and the status is dynprobe's own. */
void dp_guard_expect_exit(void);
/* Of a module that was opened: its calls of exit() and the like are dp_guard_leave(). False: one could not be changed. */
bool dp_guard_exits(const struct dl_phdr_info *info);

#endif
