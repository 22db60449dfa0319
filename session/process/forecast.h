/* SPDX-License-Identifier: MIT */
/* The estimated cost of many probes for their process; logged before it is changed, and by --dry-run. */
#ifndef DP_SESSION_PROCESS_FORECAST_H
#define DP_SESSION_PROCESS_FORECAST_H

#include "session/process/session.h"

struct dp_forecast {
	size_t places;
	size_t pages;                    /* of text that become private copies */
	uint64_t install_ns, removal_ns; /* estimates; longer on a loaded machine */
	uint64_t pause_ns;               /* longest hold of one thread */
	uint64_t together_ns;            /* longest hold of all threads together, where that is necessary */
};

struct dp_forecast dp_forecast_of(const struct dp_session *s, const struct dp_plan *plan, size_t n);
/* Logs one line if there are more than DP_MANY_PLACES plans. */
void dp_forecast_log(const struct dp_session *s, const struct dp_plan *plan, size_t n);

#endif
