/* SPDX-License-Identifier: MIT */
/* Pmodules on a snapshot that was saved: without the process, with its types as far as its files are still here. */
#ifndef DP_PMODULES_RERUN_H
#define DP_PMODULES_RERUN_H

#include "pmodules/host/host.h"

/*
 * Runs the host's modules on `s`. First everything is taken out that pmodules had added: variables, frames and one-line texts,
 * and the annotations of the modules that run now. Typed values (bt_query and so on) are of those files whose build-ids are those
 * of the snapshot's; *missing counts the others. The host must have been made with nobody_waits and dp_rerun_value.
 */
struct dp_error *dp_rerun(struct dp_host *h, struct dp_snapshot *s, size_t *missing) DP_MUST_CHECK;
/* For dp_host_options.value_of: what an extracted variable would have been made from. */
struct dp_value *dp_rerun_value(struct dp_world *w, struct dp_snap_variable *v);

#endif
