/* SPDX-License-Identifier: MIT */
/* The snapshot that a user named: a file, or a core file, of which one is taken now. */
#ifndef DP_CLI_COMMANDS_SNAPSHOTS_SNAPSHOT_OPENED_H
#define DP_CLI_COMMANDS_SNAPSHOTS_SNAPSHOT_OPENED_H

#include "cli/options/options.h"
#include "pmodules/pmodules.h"

/*
 * Opens options->name[0]; of a core file, name[1] is its executable, and may be NULL: the one that it names. The caller destroys
 * *ret. DP_TAG_BAD_SNAPSHOT, DP_TAG_BAD_CORE; DP_TAG_USAGE: an executable, but no core file.
 */
struct dp_error *dp_snapshot_opened(const struct dp_options *options, struct dp_snapshot **ret) DP_MUST_CHECK;

#endif
