/* SPDX-License-Identifier: MIT */
/* While we hold threads of a process, somebody else sees to it that we let them go: the kernel (watchdog.c). */
#ifndef DP_INJECTOR_WATCHDOG_H
#define DP_INJECTOR_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

#define DP_WATCHDOG_NS       UINT64_C(1000000000) /* until a stopped dynprobe is continued, if nothing else was said */
#define DP_WATCHDOG_GRACE_NS UINT64_C(9000000000) /* and from then on until it is killed */
extern bool dp_watchdog_is_off; /* set by a debugger: none is lit */
/* Before the first thread is seized; may be nested, the outermost counts. Where the kernel has no timer left there is no fuse. */
void dp_watchdog_start(void);
/* When the last one is let go. */
void dp_watchdog_stop(void);
/* There are threads that will stop later (dp_stray_add()): until they have gone on we are continued and they are looked at,
 * often. */
void dp_watchdog_strays(void);
/* Of those there is none left. */
void dp_watchdog_no_strays(void);
/* A lit one, from now on: other times than those above. */
void dp_watchdog_limit(uint64_t limit_ns, uint64_t grace_ns);
/* We are still at it: the times begin anew. For a hold that has no end but that of its work; costs a call now and then, not each
 * time. */
void dp_watchdog_alive(void);

#endif
