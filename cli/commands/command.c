/* SPDX-License-Identifier: MIT */
#include "cli/commands/command.h"

#include "cli/profile/profile.h"
#include "cli/run/trace.h"

/* Printed once, after attach. */
static const char exposed[] = "resident probes are not monitored: remove them before a uprobe takes the same places; for gdb "
                              "there is dynprobe-gdb.py (docs/debuggers.md)";

static int run(const struct dp_options *options)
{
	return options->profile_hz || options->off_cpu ? dp_profile(options) : dp_trace(options);
}

static int attach(const struct dp_options *options)
{
	const int status = dp_trace(options);
	if ((!status || status == DP_EXIT_PARTIAL) && !options->trace.dry_run)
		fprintf(stderr, "dynprobe: %s\n", exposed);
	return status;
}

static int (*const commands[DP_VERB_COUNT])(const struct dp_options *options) = {
        [DP_VERB_RUN] = run,
        [DP_VERB_ATTACH] = attach,
        [DP_VERB_STATUS] = dp_command_status,
        [DP_VERB_ENABLE] = dp_command_enable,
        [DP_VERB_DISABLE] = dp_command_disable,
        [DP_VERB_ADD_CONTEXT] = dp_command_add_context,
        [DP_VERB_RECORD] = dp_command_record,
        [DP_VERB_REMOVE] = dp_command_remove,
        [DP_VERB_DETACH] = dp_command_detach,
        [DP_VERB_LIST] = dp_command_list,
        [DP_VERB_STUBS] = dp_command_stubs,
        [DP_VERB_SNAPSHOT] = dp_command_snapshot,
        [DP_VERB_SHOW] = dp_command_show,
        [DP_VERB_REPORT] = dp_command_report,
        [DP_VERB_PMODULE] = dp_command_pmodule,
        [DP_VERB_VIEW] = dp_command_view,
        [DP_VERB_FLAME] = dp_command_flame,
        [DP_VERB_TRACES] = dp_command_traces,
        [DP_VERB_DOCTOR] = dp_command_doctor,
};

int dp_command_run(enum dp_verb verb, const struct dp_options *options)
{
	return commands[verb](options);
}
