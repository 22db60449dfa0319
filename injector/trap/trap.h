/* SPDX-License-Identifier: MIT */
/*
 * Traps in a target: the agent's handler in place of the program's, between the program and it the hooks, and both out again. Decision
 * 0016. Private to injector/.
 *
 * The order: hooks stand -> no thread can have the signals blocked -> handler -> int3s and loads that may fault. Out again the other way
 * round.
 */
#ifndef DP_INJECTOR_TRAP_H
#define DP_INJECTOR_TRAP_H

#include "injector/target/target.h"

#include "agent/trap/trap.h"

/* Room for the table, 0 without traps. */
uint64_t dp_trap_region_size(const struct dp_target *t);
/* Writes the table and the text's word that leads to it; before anything leads to the hooks. */
struct dp_error *dp_trap_fill(struct dp_target *t, const struct dp_plan *plans, size_t n) DP_MUST_CHECK;
/* Is there something that needs the handler, or would gain by it? */
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
/* Until a thread may have moved. */
void dp_trap_rest(void);
/* The handler's moment did not come (`why`; NULL: nobody has tried). If the hooks stand, dp_target_faults_retry() may find it. */
void dp_trap_wait(struct dp_target *t, const struct dp_error *why, bool hooked);

/*
 * `patiently`: something waits for it that cannot do without.
 *
 * With all threads held: the handler takes the signals; from then on what is guarded may be written. DP_TAG_TRAP_UNSAFE, and nothing is
 * changed, if there is no moment at which that would be safe.
 */
struct dp_error *dp_trap_arm(struct dp_target *t, bool patiently) DP_MUST_CHECK;
/*
 * Takes what is guarded out of the text and gives the signals back to the program; the hooks stay, idle. False if a thread is in the way:
 * then the guarded sites are out, and the handler stays. Does nothing for an installation without traps.
 */
struct dp_error *dp_trap_disarm(struct dp_target *t, struct dp_installation *in, struct dp_remove_report *report, bool *done) DP_MUST_CHECK;

/* ---- trap_threads.c --------------------------------------------------------------------------------------------------- */

/* Why this held thread is in the way of arming, or NULL. */
const char *dp_trap_in_the_way(struct dp_target *t, const struct dp_held *h);
/* A thread that has our signals blocked no longer has them, and is noted; the opposite (nothing, if it is not noted). */
struct dp_error *dp_trap_unblock(struct dp_target *t, struct dp_held *h) DP_MUST_CHECK;
void dp_trap_block(struct dp_target *t, uint64_t trap, struct dp_held *h);
/* By the table as it is with all threads held: is there anything to be given back? */
bool dp_trap_noted(const struct dp_trap *trap, const struct dp_held *h);
/* Behind the writing of traps: a thread whose call goes on at one. */
void dp_trap_restart(struct dp_target *t, struct dp_held *h);
/* A trap of ours that the thread has run into and that has not reached the handler: it goes back in front of it. */
void dp_trap_rewind(struct dp_held *h, const struct dp_fixup *site, uint32_t nsites);
/* Might the thread still be on its way to the handler, or in a hook? Moves it out of a call that a hook makes for it.
 * `exactly`: nor may it be in a signal handler, whose end would undo the mask that it is given back. */
bool dp_trap_clear(struct dp_target *t, const struct dp_trap *trap, struct dp_held *h, bool exactly);
/* ---- trap_actions.c ----------------------------------------------------------------------------------------------------- */

/* rt_sigaction() in the target; `new` and `old` may be NULL. */
struct dp_error *dp_trap_action(struct dp_target *t, struct dp_borrow *b, uint64_t trap, unsigned sig, const struct dp_trap_action *new,
                                struct dp_trap_action *old) DP_MUST_CHECK;
/*
 * The same for several signals, with few stops: the program's actions into struct dp_trap, and back from there; what their actions are now;
 * and one action for all of them.
 */
struct dp_error *dp_trap_note_actions(const struct dp_installation *in, struct dp_borrow *b, uint64_t signals) DP_MUST_CHECK;
struct dp_error *dp_trap_give_actions(const struct dp_installation *in, struct dp_borrow *b, uint64_t signals) DP_MUST_CHECK;
struct dp_error *dp_trap_read_actions(struct dp_target *t, const struct dp_installation *in, struct dp_borrow *b, uint64_t signals,
                                      struct dp_trap_action ret[DP_TRAP_SIGNALS]) DP_MUST_CHECK;
struct dp_error *dp_trap_set_actions(struct dp_target *t, struct dp_borrow *b, uint64_t signals, const struct dp_trap_action *new) DP_MUST_CHECK;
/* Where our signals are in the masks of actions, as in struct dp_trap; and takes them out there. */
struct dp_error *dp_trap_masks(struct dp_target *t, struct dp_borrow *b, uint64_t trap, uint64_t signals,
                               uint64_t masks[DP_TRAP_SIGNALS]) DP_MUST_CHECK;
struct dp_error *dp_trap_strip(struct dp_target *t, struct dp_borrow *b, uint64_t trap, uint64_t signals,
                               const uint64_t masks[DP_TRAP_SIGNALS]) DP_MUST_CHECK;
/* The opposite. */
struct dp_error *dp_trap_unstrip(struct dp_target *t, struct dp_borrow *b, uint64_t trap, const uint64_t masks[DP_TRAP_SIGNALS]) DP_MUST_CHECK;

#endif
