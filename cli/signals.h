/* SPDX-License-Identifier: MIT */
#ifndef DP_CLI_SIGNALS_H
#define DP_CLI_SIGNALS_H

#include "base/error.h"

/*
 * SIGINT, SIGTERM and SIGHUP wait in a descriptor from here on, so that one that comes in the middle of a transaction ends the run
 * after it; SIGPIPE is ignored.
 */
struct dp_error *dp_signals_open(int *ret) DP_MUST_CHECK;

#endif
