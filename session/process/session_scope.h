/* SPDX-License-Identifier: MIT */
/* Compiles contexts and conditions that name variables, for each site. */
#ifndef DP_SESSION_PROCESS_SESSION_SCOPE_H
#define DP_SESSION_PROCESS_SESSION_SCOPE_H

#include "session/process/session.h"

/*
 * Call it after dp_session_resolve(). A probe's field table, which writers use, is made in the first session that has its site;
 * the others must get an equal one. If a context or condition does not compile, the probe is refused, or the whole run if no
 * pattern named the probe.
 */
struct dp_error *dp_session_scope(struct dp_session *s) DP_MUST_CHECK;
/* The same for a later session (pending.h). Errors only refuse their probe; `known` is called when a probe has its field table.
 */
void dp_session_scope_late(struct dp_session *later, void (*known)(unsigned probe, void *data), void *data);
/* Compiles an expression for probe i's site. */
struct dp_error *dp_session_expr(struct dp_session *s, size_t i, const char *text, struct dp_expr **ret) DP_MUST_CHECK;
/* Compiles a -t argument for probe i's site, into fields of its own. */
struct dp_error *dp_session_fields(struct dp_session *s, size_t i, const char *context, struct dp_fields *ret) DP_MUST_CHECK;
/* The fields of one resident probe (dynprobe record). */
struct dp_error *dp_scope_typed(struct dp_image *image, uint64_t addr, enum dp_point point, const struct dp_typed *typed,
                                struct dp_fields *ret) DP_MUST_CHECK;

#endif
