/* SPDX-License-Identifier: MIT */
/* Protects the tool, and the process that it may hold, against modules in C: guard.c. */
#ifndef DP_PMODULES_HOST_GUARD_H
#define DP_PMODULES_HOST_GUARD_H

#include "pmodules/host/host_internal.h"

#include <link.h>

struct dp_guard_text { /* the address range of the module's code */
	uintptr_t start, end;
	bool runs_rarely; /* it spends its time in functions that it calls */
};
/* If `inside` is in this object, stores where its code is. */
bool dp_guard_text_of(const struct dl_phdr_info *info, uintptr_t inside, struct dp_guard_text *ret);
/*
 * Runs fn(data) for module m, whose code (or that of the library that it is in now) is `text`. Fails if it crashed
 * (m->is_broken is set: never call it again) or did not return before m->deadline_ns.
 */
struct dp_error *dp_guard_run(struct pmodule *m, const struct dp_guard_text *text, void (*fn)(void *data),
                              void *data) DP_MUST_CHECK;
void dp_guard_off(void);
/* Ends the call running on this thread like a crash in the module's code; returns if none is running. `how`: "exit()". */
void dp_guard_leave(const char *how);

/*
 * guard_exit.c. Call before opening modules: an exit() by a module is reported with its name, and the status is dynprobe's own.
 */
void dp_guard_expect_exit(void);
/* Redirects a loaded module's calls of exit() and the like to dp_guard_leave(). False: one could not be redirected. */
bool dp_guard_exits(const struct dl_phdr_info *info);

#endif
