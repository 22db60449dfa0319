/* SPDX-License-Identifier: MIT */
/* What earlier commands left in one process: the standing probes, each with what was asked for it. */
#ifndef DP_SESSION_LEFT_H
#define DP_SESSION_LEFT_H

#include "injector/injector.h"
#include "session/manifest.h"

struct dp_left_group { /* what one attach left */
	struct dp_resident *standing;
	struct dp_manifest manifest; /* empty if it is damaged */
	struct dp_error *damaged;
	bool *chosen; /* of each probe, by dp_left_choose() */
};

struct dp_left {
	const struct dp_trace_spec *trace;
	struct dp_target *target;
	struct dp_left_group *group;
	size_t n;
};

/*
 * Opens the process, which locks other tools out until dp_left_close(). That nothing was left in it is no error. `look`: nothing
 * is to be done in it, not even tidying up behind a killed tool.
 */
struct dp_error *dp_left_open(const struct dp_trace_spec *trace, pid_t pid, bool look, struct dp_left *ret) DP_MUST_CHECK;
void dp_left_close(struct dp_left *left);

/* Does probe i of the group still stand (or is it retired, and its place still ours)? */
bool dp_left_stands(const struct dp_left_group *g, size_t i);
/*
 * Marks the standing probes whose names match one of `names` (globs); DP_TAG_NO_PROBE if one of them matches none: a typo should
 * not do half of it.
 */
struct dp_error *dp_left_choose(struct dp_left *left, char *const *names, size_t n) DP_MUST_CHECK;
/* "foo, bar", malloc'ed: the chosen ones. */
char *dp_left_chosen(const struct dp_left *left);

#endif
