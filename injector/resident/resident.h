/* SPDX-License-Identifier: MIT */
/* What the files about probes of earlier tools share. */
#ifndef DP_INJECTOR_STANDING_H
#define DP_INJECTOR_STANDING_H

#include "injector/target/group/group.h"

/* ---- resident_find.c ------------------------------------------------------------------------------------------------------ */

enum dp_group_kind {
	DP_GROUP_OTHER, /* not ours to touch: the LTTng sink, or another tool's view of its target */
	DP_GROUP_LEFT,  /* a dead tool's, or a fork's from its parent */
	DP_GROUP_KEPT,  /* left on purpose */
};
struct dp_groups {
	struct dp_resident **group;
	enum dp_group_kind *kind;
	size_t n;
};
/*
 * Every group of the target's image, from the mappings and from what the target itself holds: nothing of that is believed before it is
 * checked. DP_TAG_DAMAGED, DP_TAG_LOCKED (a living tool serves one, or it is of another version).
 */
struct dp_error *dp_groups_find(struct dp_target *t, struct dp_groups *ret) DP_MUST_CHECK;
void dp_groups_fini(struct dp_groups *groups);
/* Accepts NULL. */
struct dp_resident *dp_resident_destroy(struct dp_resident *s);

/* ---- resident_table.c: the control page and the site table, as found ----------------------------------------------------------- */

/* Is everything that the control page leads to inside the data region? */
bool dp_control_valid(const struct dp_control *c, uint64_t size);
struct dp_error *dp_resident_read_sites(struct dp_resident *s) DP_MUST_CHECK;
struct dp_error *dp_resident_read_manifest(struct dp_resident *s) DP_MUST_CHECK;

/* ---- resident.c ------------------------------------------------------------------------------------------------------------- */

/* Reads and writes the target's memory; looks for another living thread to do it through if the one at hand has ended. */
struct dp_error *dp_resident_get(const struct dp_resident *s, uint64_t offset, void *buf, size_t n) DP_MUST_CHECK;
struct dp_error *dp_resident_put(const struct dp_resident *s, uint64_t offset, const void *buf, size_t n) DP_MUST_CHECK;
/* Is any probe of it left, in its place or displaced by somebody else? */
bool dp_resident_any(const struct dp_resident *s);

/* ---- resident_shadow.c: the rings without a mapping ------------------------------------------------------------------------------ */

/* Takes over the rings as they are: nobody may write to them in the middle of this, and nobody else may consume them after it. */
struct dp_error *dp_shadow_create(struct dp_resident *s, struct dp_shadow **ret) DP_MUST_CHECK;
/* Accepts NULL. */
struct dp_shadow *dp_shadow_destroy(struct dp_shadow *sh);
/* Reads what is new, passes it on, gives its room back. `last`: passes on all that it has. */
struct dp_error *dp_shadow_run(struct dp_resident *s, bool last, dp_hit_fn each, void *data) DP_MUST_CHECK;
/* Adds what was lost on the way. */
void dp_shadow_loss(const struct dp_shadow *sh, unsigned probe, struct dp_loss *ret);

/* ---- resident_serve.c ---------------------------------------------------------------------------------------------------------- */

/* The server is dead: its rings overwrite themselves again. */
struct dp_error *dp_resident_unserve(struct dp_resident *s) DP_MUST_CHECK;

#endif
