/* SPDX-License-Identifier: MIT */
/*
 * Traps in a target: installs the agent's signal handler instead of the program's and hooks its system calls that deal with
 * signals; removes both (decision 0016). Private to injector/.
 *
 * Order: install the hooks; make sure that no thread has the signals blocked; install the handler; write int3s and loads that may
 * fault. Removal is the reverse (patch/trap_disarm.c).
 */
#ifndef DP_INJECTOR_TRAP_TRAP_H
#define DP_INJECTOR_TRAP_TRAP_H

#include "injector/target/target.h"

#include "agent/trap/trap.h"

/* Writes the table and the word in the agent's text that points to it. Call before anything jumps to the hooks. */
struct dp_error *dp_trap_fill(struct dp_target *t, const struct dp_plan *plans, size_t n) DP_MUST_CHECK;
/* Does any plan need the handler, or benefit from it? */
bool dp_trap_planned(const struct dp_target *t, const struct dp_plan *plans, size_t n);
static inline bool dp_plan_is_guarded(const struct dp_plan *plan)
{
	return plan->tactic == DP_TACTIC_TRAP || plan->guarded || plan->nfixups;
}

/* Writes a field of the target's struct dp_trap. */
static inline struct dp_error *dp_trap_put(struct dp_target *t, uint64_t at, const void *value, size_t n)
{
	return dp_mem_write(&t->process, dp_addr_of(at), value, n);
}
#define DP_TRAP_PUT(t, trap, field, value) dp_trap_put(t, (trap) + offsetof(struct dp_trap, field), value, sizeof(*(value)))
/* Sleeps until a thread may have moved. */
void dp_trap_rest(void);
/* The handler is not installed yet (`why`; NULL: not tried). With `hooked`, dp_target_faults_retry() tries again. */
void dp_trap_wait(struct dp_target *t, const struct dp_error *why, bool hooked);

/*
 * With all threads held: installs the handler; guarded sites may be written afterwards. DP_TAG_TRAP_UNSAFE, with nothing changed,
 * if there is no safe moment. `patiently`: something depends on the handler, so try for longer.
 */
struct dp_error *dp_trap_arm(struct dp_target *t, bool patiently) DP_MUST_CHECK;

/* ---- trap_threads.c --------------------------------------------------------------------------------------------------- */

/* Why this held thread prevents arming, or NULL. */
const char *dp_trap_in_the_way(struct dp_target *t, const struct dp_held *h);
/* Unblocks our signals in a thread that blocks them, and records it; dp_trap_block() undoes that for a recorded thread. */
struct dp_error *dp_trap_unblock(struct dp_target *t, struct dp_held *h) DP_MUST_CHECK;
void dp_trap_block(struct dp_target *t, uint64_t trap, struct dp_held *h);
/* According to the table, read with all threads held: is anything recorded for this thread? */
bool dp_trap_noted(const struct dp_trap *trap, const struct dp_held *h);
/* After traps were written: for a thread whose system call restarts at one. */
void dp_trap_restart(struct dp_target *t, struct dp_held *h);
/* Moves a thread that hit one of our traps, but has not reached the handler, back to the trap. */
void dp_trap_rewind(struct dp_held *h, const struct dp_fixup *site, uint32_t nsites);
/*
 * False if the thread may be on its way to the handler or in a hook. Moves it out of a call that a hook makes for it. `exactly`:
 * it must not be in a signal handler either, whose return would undo the mask that it is given back.
 */
bool dp_trap_clear(struct dp_target *t, const struct dp_trap *trap, struct dp_held *h, bool exactly);
/* ---- trap_actions.c ----------------------------------------------------------------------------------------------------- */

/* rt_sigaction() in the target; `new` and `old` may be NULL. */
struct dp_error *dp_trap_action(struct dp_target *t, struct dp_borrow *b, uint64_t trap, unsigned sig, const struct dp_trap_action *new,
                                struct dp_trap_action *old) DP_MUST_CHECK;
/*
 * The same for several signals with few stops. note: copies the program's actions to struct dp_trap; give: back from there; read:
 * the current actions; set: one action for all.
 */
struct dp_error *dp_trap_note_actions(const struct dp_installation *in, struct dp_borrow *b, uint64_t signals) DP_MUST_CHECK;
struct dp_error *dp_trap_give_actions(const struct dp_installation *in, struct dp_borrow *b, uint64_t signals) DP_MUST_CHECK;
struct dp_error *dp_trap_read_actions(struct dp_target *t, const struct dp_installation *in, struct dp_borrow *b, uint64_t signals,
                                      struct dp_trap_action ret[DP_TRAP_SIGNALS]) DP_MUST_CHECK;
struct dp_error *dp_trap_set_actions(struct dp_target *t, struct dp_borrow *b, uint64_t signals, const struct dp_trap_action *new) DP_MUST_CHECK;
/* Finds our signals in the masks of actions, recorded as in struct dp_trap; dp_trap_strip() removes them there. */
struct dp_error *dp_trap_masks(struct dp_target *t, struct dp_borrow *b, uint64_t trap, uint64_t signals,
                               uint64_t masks[DP_TRAP_SIGNALS]) DP_MUST_CHECK;
struct dp_error *dp_trap_strip(struct dp_target *t, struct dp_borrow *b, uint64_t trap, uint64_t signals,
                               const uint64_t masks[DP_TRAP_SIGNALS]) DP_MUST_CHECK;
/* Undoes dp_trap_strip(). */
struct dp_error *dp_trap_unstrip(struct dp_target *t, struct dp_borrow *b, uint64_t trap, const uint64_t masks[DP_TRAP_SIGNALS]) DP_MUST_CHECK;

#endif
