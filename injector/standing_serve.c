/* SPDX-License-Identifier: MIT */
/* Serving what an earlier tool left: for the time of a recording its rings are drained, and do not overwrite themselves. */
#include "injector/standing.h"

/* A server that is named is believed to live as long as it does; so the name goes last. */
struct dp_error *dp_standing_unserve(struct dp_standing *s)
{
	const uint32_t overwrite = 1;
	const uint64_t nobody = 0;
	DP_TRY(dp_standing_put(s, offsetof(struct dp_control, overwrite), &overwrite, sizeof(overwrite)));
	DP_TRY(dp_standing_put(s, offsetof(struct dp_control, tool_pid), &nobody, sizeof(nobody)));
	s->control.tool_pid = 0;
	return NULL;
}

struct dp_error *dp_standing_serve(struct dp_standing *s)
{
	return dp_error(DP_TAG_INTERNAL, "%d", s->target->process.pid);
}
struct dp_error *dp_standing_drain(struct dp_standing *s, bool last, dp_hit_fn each, void *data)
{
	(void)last;
	(void)each;
	(void)data;
	return dp_error(DP_TAG_INTERNAL, "%d", s->target->process.pid);
}
struct dp_error *dp_standing_release(struct dp_standing *s)
{
	return dp_standing_unserve(s);
}
