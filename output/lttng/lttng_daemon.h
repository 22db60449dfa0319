/* SPDX-License-Identifier: MIT */
/* Finds this user's session daemon, and explains why it cannot be reached. */
#ifndef DP_OUTPUT_LTTNG_LTTNG_DAEMON_H
#define DP_OUTPUT_LTTNG_LTTNG_DAEMON_H

#include "base/error.h"

#include <stdint.h>

/* liblttng-ctl found no session daemon. The error says whether there is one that this user may not use, and what to do. */
struct dp_error *dp_lttng_absent(void) DP_MUST_CHECK;
/* The daemon did not answer in time. */
struct dp_error *dp_lttng_silent(uint64_t timeout_ns) DP_MUST_CHECK;

/*
 * LTTng's answer as an error. `code` is liblttng-ctl's (its sign does not matter); the format says what was requested. Call it in
 * the process that called liblttng-ctl.
 */
struct dp_error *dp_lttng_error(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3))) DP_MUST_CHECK;

#endif
