/* SPDX-License-Identifier: MIT */
/* The verbs. Each prints its errors and returns the exit status. */
#ifndef DP_CLI_COMMANDS_COMMAND_H
#define DP_CLI_COMMANDS_COMMAND_H

#include "cli/options/options.h"

int dp_command_run(enum dp_verb verb, const struct dp_options *options);

int dp_command_status(const struct dp_options *options);
int dp_command_enable(const struct dp_options *options);
int dp_command_disable(const struct dp_options *options);
int dp_command_add_context(const struct dp_options *options);
int dp_command_record(const struct dp_options *options);
int dp_command_remove(const struct dp_options *options);
int dp_command_detach(const struct dp_options *options);
int dp_command_list(const struct dp_options *options);
int dp_command_pmodule(const struct dp_options *options);
int dp_command_stubs(const struct dp_options *options);
int dp_command_snapshot(const struct dp_options *options);
int dp_command_show(const struct dp_options *options);
int dp_command_view(const struct dp_options *options);
int dp_command_flame(const struct dp_options *options);
int dp_command_traces(const struct dp_options *options);
int dp_command_doctor(const struct dp_options *options);
int dp_command_report(const struct dp_options *options);
/* `words`: the arguments of explain, NULL-terminated. */
int dp_command_explain(char *const words[]);
/* The same of completion. */
int dp_command_completion(char *const words[]);

#endif
