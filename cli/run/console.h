/* SPDX-License-Identifier: MIT */
/* The engine's calls on the terminal, for every command: its log lines, its progress, and the signals that end it. */
#ifndef DP_CLI_RUN_CONSOLE_H
#define DP_CLI_RUN_CONSOLE_H

#include "cli/options/options.h"

/* Sets `calls` by -q and -v. `options` must outlive them. */
void dp_console_calls(const struct dp_options *options, struct dp_trace_calls *calls);

#endif
