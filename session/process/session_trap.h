/* SPDX-License-Identifier: MIT */
/* Traps and the fault handler of a session, and the hooks that both need. */
#ifndef DP_SESSION_PROCESS_SESSION_TRAP_H
#define DP_SESSION_PROCESS_SESSION_TRAP_H

#include "session/process/session.h"

struct dp_session_trap;
struct dp_session_trap *dp_session_trap_destroy(struct dp_session_trap *trap);

/* The tactics for probe `i`; traps only after dp_session_trap_begin(). */
unsigned dp_session_tactics(const struct dp_session *s, size_t i);
/* Number of refused probes for which a trap may be tried. */
size_t dp_session_trap_candidates(const struct dp_session *s);
/* Finds the hooks and reserves room for them; before dp_target_prepare(). DP_TAG_TRAP_UNSAFE: traps are not possible. */
struct dp_error *dp_session_trap_begin(struct dp_session *s) DP_MUST_CHECK;
/* Plans the hooks, if dp_session_trap_begin() succeeded. */
struct dp_error *dp_session_trap_plan(struct dp_session *s, struct dp_planner *planner, struct dp_code_view *view) DP_MUST_CHECK;
/* Drops the refusals that a trap could avoid, for another planning. */
void dp_session_trap_retry(struct dp_session *s);
/* Drops the hooks as well. */
void dp_session_trap_forget(struct dp_session *s);
/* Whether a probe follows pointers, and the agent may handle the faults. That needs the same hooks, dp_session_trap_begin(). */
bool dp_session_faults_wanted(const struct dp_session *s);
/* The fault handler is not possible: prepares another planning, with reads by system calls. Takes ownership of `why`. */
void dp_session_faults_refuse(struct dp_session *s, struct dp_error *why);
/* It is not possible now, and will be tried again: prepares another planning. Takes ownership of `why`. */
void dp_session_faults_put_off(struct dp_session *s, struct dp_error *why);
/* Call it before the first planning. */
void dp_session_trap_spare(struct dp_session *s);
/* Call it when the probes are installed. */
void dp_session_faults_installed(struct dp_session *s);
/* Call it during the run: tries again to install the handler now and then. */
void dp_session_faults_round(struct dp_session *s);
/* Whether traps are used in place of jumps, without --tactic trap. Then they must not make the run fail. */
bool dp_session_trap_is_fallback(const struct dp_session *s);
/* After installation: logs the number of such traps. */
void dp_session_trap_note(const struct dp_session *s);
/* Such traps failed: prepares another planning without them. Takes ownership of `why`. */
void dp_session_trap_drop_fallback(struct dp_session *s, struct dp_error *why);
/* There will be no traps: adds `why` to the refusals of the probes that could have used one. */
void dp_session_trap_refuse(struct dp_session *s, const struct dp_error *why);

#endif
