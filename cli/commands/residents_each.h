/* SPDX-License-Identifier: MIT */
/* A command on the resident probes of each process that it names. */
#ifndef DP_CLI_COMMANDS_RESIDENTS_EACH_H
#define DP_CLI_COMMANDS_RESIDENTS_EACH_H

#include "cli/options/options.h"
#include "session/residents.h"

/*
 * Calls `act` for every process of the options and prints its errors. The exit status: DP_EXIT_FAILURE if all failed,
 * DP_EXIT_PARTIAL if some did.
 */
typedef struct dp_error *(*dp_residents_fn)(const struct dp_options *options, struct dp_residents *left);
int dp_residents_each(const struct dp_options *options, bool look, dp_residents_fn act);
/* After a signal the remaining processes are skipped. */
void dp_residents_say_skipped(size_t skipped, size_t of);

#endif
