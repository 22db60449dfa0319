/* SPDX-License-Identifier: MIT */
/* Which session daemon there is for this user, and what stands between them: the words of our messages. */
#ifndef DP_OUTPUT_LTTNG_DAEMON_H
#define DP_OUTPUT_LTTNG_DAEMON_H

#include "base/error.h"

#include <stdint.h>

/* liblttng-ctl found no session daemon: is there one that this user may not talk to, and what is to be done? */
struct dp_error *dp_lttng_absent(void) DP_MUST_CHECK;
/* The daemon did not answer within the time. */
struct dp_error *dp_lttng_silent(uint64_t timeout_ns) DP_MUST_CHECK;

/*
 * What LTTng answered, as an error: `code` is liblttng-ctl's (its sign does not matter); the rest says what was asked. Call it in
 * the process that called liblttng-ctl.
 */
struct dp_error *dp_lttng_error(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3))) DP_MUST_CHECK;

#endif
