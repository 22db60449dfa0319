/* SPDX-License-Identifier: MIT */
/* The resident probes that earlier commands left in one process, each with what its user asked for. */
#ifndef DP_SESSION_RESIDENTS_H
#define DP_SESSION_RESIDENTS_H

#include "injector/injector.h"
#include "session/manifest.h"

struct dp_residents_group { /* the probes of one attach */
	struct dp_resident *resident;
	struct dp_manifest manifest; /* empty if the process damaged it */
	struct dp_error *damaged;
	bool *chosen; /* for each probe; set by dp_residents_choose() */
};

struct dp_residents {
	const struct dp_trace_spec *trace;
	struct dp_target *target;
	struct dp_residents_group *group;
	size_t n;
	bool partial; /* a command could not do all of its work; it has said so */
};

/*
 * Opens the process, which locks other tools out until dp_residents_close(). A process without resident probes is no error.
 * `inspect_only`: change nothing in the process, not even to clean up after a killed tool.
 */
struct dp_error *dp_residents_open(const struct dp_trace_spec *trace, pid_t pid, bool inspect_only,
                                   struct dp_residents *ret) DP_MUST_CHECK;
void dp_residents_close(struct dp_residents *left);

/* Whether probe i of the group is still installed, or is retired and its site is still ours. */
bool dp_residents_stands(const struct dp_residents_group *g, size_t i);
/*
 * Marks the installed probes whose names match one of `names` (globs). DP_TAG_NO_PROBE if one of them matches no probe: a
 * command with a typo should not be half done.
 */
struct dp_error *dp_residents_choose(struct dp_residents *left, char *const *names, size_t n) DP_MUST_CHECK;
/* The names of the chosen probes, "foo, bar"; malloc'ed. */
char *dp_residents_chosen(const struct dp_residents *left);

#endif
