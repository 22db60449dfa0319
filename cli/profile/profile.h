/* SPDX-License-Identifier: MIT */
/* --profile HZ: where the threads of a process spend their CPU time, by samples of their stacks. */
#ifndef DP_CLI_PROFILE_PROFILE_H
#define DP_CLI_PROFILE_PROFILE_H

#include "cli/options/options.h"

/* Runs it; the exit status. Errors are printed. */
int dp_profile(const struct dp_options *options);

#endif
