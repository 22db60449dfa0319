/* SPDX-License-Identifier: MIT */
/* What many probes will cost the process that they go into: said before it is touched, and by --dry-run. */
#ifndef DP_SESSION_FORECAST_H
#define DP_SESSION_FORECAST_H

#include "session/process/session.h"

struct dp_forecast {
	size_t places;
	size_t pages;                    /* of the program's text that become private copies */
	uint64_t install_ns, removal_ns; /* about; on a processor that others want as well it takes longer */
	uint64_t pause_ns;               /* so long one thread is held, at most */
	uint64_t together_ns;            /* so long all of them are, at most, where they have to be */
};

struct dp_forecast dp_forecast_of(const struct dp_session *s, const struct dp_plan *plan, size_t n);
/* One line on standard error, if they are many (DP_MANY_PLACES). */
void dp_forecast_say(const struct dp_session *s, const struct dp_plan *plan, size_t n);

#endif
