/* SPDX-License-Identifier: MIT */
/* Kernel timers that resume, then kill, a tool that holds threads for too long (watchdog.c). */
#ifndef DP_INJECTOR_TRACEE_STOP_WATCHDOG_H
#define DP_INJECTOR_TRACEE_STOP_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

#define DP_WATCHDOG_NS       UINT64_C(1000000000) /* until a stopped dynprobe is continued, by default */
#define DP_WATCHDOG_GRACE_NS UINT64_C(9000000000) /* and from then until it is killed */
extern bool dp_watchdog_is_off; /* set by a debugger: no timer is started */
/*
 * Says that the second timer will end this process at its next tick, while it holds `held`. NULL: nobody does. Called in a signal
 * handler: it may call only what signal-safety(7) lists.
 */
extern void (*dp_watchdog_last_word)(const char *held);
/*
 * Called once, before the first thread is held without a timer: the kernel gives this process none (RLIMIT_SIGPENDING). NULL:
 * nobody is told.
 */
extern void (*dp_watchdog_absent)(void);
/*
 * Call it before the first thread is seized. Calls nest; the outermost counts. If no kernel timer is free, it does nothing.
 * `held`, a constant, is for the last word: "all threads of the program".
 */
void dp_watchdog_start(const char *held);
/* Call it when the last thread is released. */
void dp_watchdog_stop(void);
/* Some threads will stop late (dp_late_stop_add()): until they are released, a timer continues us and checks on them. */
void dp_watchdog_late_stops(void);
/* No such thread is left. */
void dp_watchdog_no_late_stops(void);
/* Changes the times of a running watchdog, from now on. */
void dp_watchdog_limit(uint64_t limit_ns, uint64_t grace_ns);
/* Restarts the times, for holds whose length depends on their work alone. Makes system calls only now and then. */
void dp_watchdog_alive(void);

#endif
