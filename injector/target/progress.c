/* SPDX-License-Identifier: MIT */
#include "injector/target/target.h"

struct dp_error *dp_target_progress(const struct dp_target *t, size_t done, size_t of)
{
	const bool removing = t->doing == DP_REMOVING;
	if (t->doing == DP_AT_REST || !t->options.progress)
		return NULL;
	if (t->options.progress(removing, done, of, t->options.progress_data) || removing)
		return NULL;
	return dp_error(DP_TAG_INTERRUPTED, "interrupted while installing probes in process %d (%s): none was left installed",
	                t->process.pid, t->process.comm);
}
