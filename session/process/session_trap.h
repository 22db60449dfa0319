/* SPDX-License-Identifier: MIT */
/* Traps of a session, and the hooks that they need. */
#ifndef DP_SESSION_TRAP_H
#define DP_SESSION_TRAP_H

#include "session/process/session.h"

struct dp_session_trap;
struct dp_session_trap *dp_session_trap_destroy(struct dp_session_trap *trap);

/* What probe `i` may be planned with: traps only from dp_session_trap_begin() on. */
unsigned dp_session_tactics(const struct dp_session *s, size_t i);
/* So many probes were refused that a trap could take, if traps are allowed. */
size_t dp_session_trap_wanting(const struct dp_session *s);
/* Finds the hooks and makes room for them; before dp_target_prepare(). DP_TAG_TRAP_UNSAFE says why there can be no traps. */
struct dp_error *dp_session_trap_begin(struct dp_session *s) DP_MUST_CHECK;
/* Plans the hooks, if there are to be traps. */
struct dp_error *dp_session_trap_plan(struct dp_session *s, struct dp_planner *planner, struct dp_code_view *view) DP_MUST_CHECK;
/* Everything may be planned anew. */
void dp_session_trap_retry(struct dp_session *s);
void dp_session_trap_forget(struct dp_session *s);
/* Does a probe follow pointers, and may the agent's handler take the faults? It needs the same hooks, from dp_session_trap_begin() on. */
bool dp_session_faults_wanted(const struct dp_session *s);
/* It cannot: everything may be planned anew, with reads by system calls. Takes the error. */
void dp_session_faults_refuse(struct dp_session *s, struct dp_error *why);
/* It cannot for now: everything may be planned anew, with reads by the agent. Takes the error. */
void dp_session_faults_put_off(struct dp_session *s, struct dp_error *why);
/* The probes stand. */
void dp_session_faults_installed(struct dp_session *s);
/* While they do: now and then the handler is tried again. */
void dp_session_faults_round(struct dp_session *s);
/* Are there traps although nobody asked for them? The run does not fail for their sake. */
bool dp_session_trap_is_spare(const struct dp_session *s);
/* Says, once the probes stand, at how many places there is one that nobody asked for. */
void dp_session_trap_note(const struct dp_session *s);
/* They cannot be had: everything may be planned anew, without. Takes the error. */
void dp_session_trap_no_spare(struct dp_session *s, struct dp_error *why);
/* It stays without traps: the probes that wanted one are told why. */
void dp_session_trap_refuse(struct dp_session *s, const struct dp_error *why);

#endif
