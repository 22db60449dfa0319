/* SPDX-License-Identifier: MIT */
/* Contexts and conditions in the program's own terms: what they mean at each site. */
#ifndef DP_SESSION_SCOPE_H
#define DP_SESSION_SCOPE_H

#include "session/process/session.h"

/*
 * Behind dp_session_resolve(). A probe's field table, which the writers go by, is made in the first session that has its place
 * and must come out alike in the others. What cannot be given a meaning is refused there: the whole run, if the probe was named
 * alone.
 */
struct dp_error *dp_session_scope(struct dp_session *s) DP_MUST_CHECK;
/*
 * The same for what was found beside another session: whatever has no meaning is refused alone. `known`: of this probe the field
 * table is there from now on.
 */
void dp_session_scope_late(struct dp_session *later, void (*known)(unsigned probe, void *data), void *data);
/* What an expression means at probe i. */
struct dp_error *dp_session_expr(struct dp_session *s, size_t i, const char *text, struct dp_expr **ret) DP_MUST_CHECK;
/* The same for one probe that stands in a process (record): only its fields. */
struct dp_error *dp_scope_typed(struct dp_image *image, uint64_t addr, enum dp_point point, const struct dp_typed *typed,
                                struct dp_fields *ret) DP_MUST_CHECK;

#endif
