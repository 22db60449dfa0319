/* SPDX-License-Identifier: MIT */
#ifndef DP_CLI_SIGNALS_H
#define DP_CLI_SIGNALS_H

#include "base/error.h"

/*
 * SIGINT, SIGTERM and SIGHUP wait in a descriptor from here on, so that one that comes in the middle of a transaction ends the
 * run after it; SIGPIPE is ignored.
 */
struct dp_error *dp_signals_open(int *ret) DP_MUST_CHECK;
/*
 * For long work that has changed nothing yet: DP_TAG_INTERRUPTED if one of them waits. It stays where it is. The work is done in
 * steps, of which step `n` is next: only now and then is the kernel asked.
 */
struct dp_error *dp_signals_check(size_t n) DP_MUST_CHECK;
/* From here on probes stand, and a signal ends their run in order: dp_signals_check() finds nothing any more. */
void dp_signals_settled(void);

#endif
