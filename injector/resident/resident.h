/* SPDX-License-Identifier: MIT */
/* Shared by the files that handle probes of earlier tools. */
#ifndef DP_INJECTOR_RESIDENT_RESIDENT_H
#define DP_INJECTOR_RESIDENT_RESIDENT_H

#include "injector/target/group/group.h"

/* ---- resident_find.c ------------------------------------------------------------------------------------------------------ */

enum dp_group_kind {
	DP_GROUP_OTHER, /* do not touch: the LTTng sink, or another tool's view of its target */
	DP_GROUP_LEFT,  /* left by a dead tool, or inherited by a fork from its parent */
	DP_GROUP_KEPT,  /* left on purpose: resident probes */
};
struct dp_groups {
	struct dp_resident **group;
	enum dp_group_kind *kind;
	size_t n;
};
/*
 * Finds every group of the target, from the mappings and from the target's own memory, whose contents are checked before use.
 * DP_TAG_DAMAGED, DP_TAG_LOCKED (a living tool serves a group, or it is of another version).
 */
struct dp_error *dp_groups_find(struct dp_target *t, struct dp_groups *ret) DP_MUST_CHECK;
void dp_groups_fini(struct dp_groups *groups);
/* Was it written by a tool of our pid namespace? Else its pids mean nothing here. */
bool dp_control_is_local(const struct dp_control *c);
/* Accepts NULL. */
struct dp_resident *dp_resident_destroy(struct dp_resident *s);

/* ---- resident_table.c: the control page and the site table, as found ----------------------------------------------------------- */

/* Is everything that the control page refers to inside the data region? */
bool dp_control_valid(const struct dp_control *c, uint64_t size);
struct dp_error *dp_resident_read_sites(struct dp_resident *s) DP_MUST_CHECK;
struct dp_error *dp_resident_read_manifest(struct dp_resident *s) DP_MUST_CHECK;

/* ---- resident.c ------------------------------------------------------------------------------------------------------------- */

/* Read and write the target's memory. If the thread in use has ended, they pick another living one. */
struct dp_error *dp_resident_get(const struct dp_resident *s, uint64_t offset, void *buf, size_t n) DP_MUST_CHECK;
struct dp_error *dp_resident_put(const struct dp_resident *s, uint64_t offset, const void *buf, size_t n) DP_MUST_CHECK;
/* Does it have a probe left, installed or displaced by other bytes? */
bool dp_resident_any(const struct dp_resident *s);

/* ---- resident_shadow.c: the rings without a mapping ------------------------------------------------------------------------------ */

/* Takes over the rings as they are. During this no thread may write to them; afterwards nothing else may consume them. */
struct dp_error *dp_shadow_create(struct dp_resident *s, struct dp_shadow **ret) DP_MUST_CHECK;
/* Accepts NULL. */
struct dp_shadow *dp_shadow_destroy(struct dp_shadow *sh);
/* Reads new records, passes them on, frees their space. `last`: passes on everything. */
/* Hits go to to->each in the order of time, or, if that is NULL, to to->lane. */
struct dp_outer;
struct dp_error *dp_shadow_run(struct dp_resident *s, bool last, struct dp_outer *to) DP_MUST_CHECK;
/* Adds the events that were lost on the way. */
void dp_shadow_loss(const struct dp_shadow *sh, unsigned probe, struct dp_loss *ret);

/* ---- resident_serve.c ---------------------------------------------------------------------------------------------------------- */

/* For a dead server: its rings overwrite old records again. */
struct dp_error *dp_resident_unserve(struct dp_resident *s) DP_MUST_CHECK;

#endif
