/* SPDX-License-Identifier: MIT */
/*
 * A tool that is stopped (kill -STOP, a debugger, a frozen group) answers no questions, and programs would wait. While execs are
 * watched, one kernel timer continues the tool every half second, which ends a stop by job control; another ends the tool unless
 * its watching thread postpones that: then the kernel answers for it (watchdog.h does the same while threads are held).
 */
#ifndef DP_INJECTOR_TRACEE_EXEC_EXEC_GUARD_H
#define DP_INJECTOR_TRACEE_EXEC_EXEC_GUARD_H

#include <stdint.h>

#define DP_EXEC_GUARD_NS UINT64_C(30000000000) /* from the last dp_exec_guard_alive() to the tool's end */
#define DP_EXEC_ALIVE_MS 2000

struct dp_exec_guard; /* opaque */
/* NULL: the kernel has no timers left, or a debugger has switched them off (dp_watchdog_is_off). */
struct dp_exec_guard *dp_exec_guard_create(void);
struct dp_exec_guard *dp_exec_guard_destroy(struct dp_exec_guard *g);
/* Call it at least every DP_EXEC_ALIVE_MS. Accepts NULL. */
void dp_exec_guard_alive(struct dp_exec_guard *g);

#endif
