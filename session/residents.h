/* SPDX-License-Identifier: MIT */
/* The resident probes that earlier commands left in one process, each with what its user asked for. */
#ifndef DP_SESSION_RESIDENTS_H
#define DP_SESSION_RESIDENTS_H

#include "injector/injector.h"
#include "injector/resident/dumped.h"
#include "session/manifest.h"

struct dp_residents_group { /* the probes of one attach */
	struct dp_resident *resident;
	struct dp_dumped *dumped;    /* in a core file; then `resident` is NULL */
	struct dp_manifest manifest; /* empty if the process damaged it */
	struct dp_error *damaged;
	bool *chosen; /* for each probe; set by dp_residents_choose() */
};

struct dp_residents {
	const struct dp_trace_spec *trace;
	struct dp_target *target;
	struct dp_residents_core *core; /* residents_core.c; then `target` is NULL */
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
/*
 * The same from a core file, for dp_recording_add() only. `exe`: its executable, or NULL. Warns of what the core file lacks.
 * DP_TAG_NO_PROBE if it has no rings of resident probes, DP_TAG_BAD_CORE.
 */
struct dp_error *dp_residents_open_core(const struct dp_trace_spec *trace, const char *core, const char *exe,
                                        struct dp_residents *ret) DP_MUST_CHECK;
void dp_residents_close_core(struct dp_residents *left);

/* Of the process, or of the core file. */
pid_t dp_residents_pid(const struct dp_residents *left);
const char *dp_residents_comm(const struct dp_residents *left);
struct dp_image *dp_residents_image(const struct dp_residents *left);
bool dp_residents_have_ended(const struct dp_residents *left);
/* Reads the manifest of g's probes: sets manifest, or damaged. */
void dp_residents_describe(struct dp_residents_group *g, const char *manifest, unsigned nprobes);
/* dp_resident_loss() of probe i. */
void dp_residents_loss(const struct dp_residents_group *g, unsigned i, struct dp_loss *ret);

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
