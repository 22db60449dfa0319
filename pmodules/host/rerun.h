/* SPDX-License-Identifier: MIT */
/* Runs pmodules on a saved snapshot: no process; types come from the original files, as far as they still exist. */
#ifndef DP_PMODULES_HOST_RERUN_H
#define DP_PMODULES_HOST_RERUN_H

#include "pmodules/host/host.h"

/*
 * Runs the host's modules on `s`. First removes what pmodules added: variables, frames, one-line summaries, and the annotations
 * of the modules that run now. Typed values (bt_query and so on) exist for files whose build-ids match the snapshot's; *missing
 * counts the others. The host must be made with nobody_waits and dp_rerun_value.
 */
struct dp_error *dp_rerun(struct dp_host *h, struct dp_snapshot *s, size_t *missing) DP_MUST_CHECK;
/* For dp_host_options.value_of: the value that an extracted variable would have been made from. */
struct dp_value *dp_rerun_value(struct dp_debug_ctx *w, struct dp_snap_variable *v);

#endif
