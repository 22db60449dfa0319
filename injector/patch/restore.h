/* SPDX-License-Identifier: MIT */
/* Restores the bytes of an installation's sites. Private to remove.c, trap_disarm.c, restore.c and restore_order.c. */
#ifndef DP_INJECTOR_PATCH_RESTORE_H
#define DP_INJECTOR_PATCH_RESTORE_H

#include "injector/target/target.h"

/*
 * Restores the sites with chosen[i] (NULL: all), retired ones too: the change that retired a site may have been undone since, and
 * then our jump is there again. Failures are counted in the report. Works while the threads run, as far as the text allows; the
 * rest is done with all held, several times briefly: report->live, report->why_frozen. After an error some sites may be
 * unchanged: call again.
 */
struct dp_error *dp_restore(struct dp_target *t, struct dp_installation *in, const bool *chosen,
                            struct dp_remove_report *report) DP_MUST_CHECK;
/* The same, with all threads held by the caller. */
struct dp_error *dp_restore_held(struct dp_target *t, struct dp_installation *in, const bool *chosen, struct dp_freeze *f,
                                 struct dp_remove_report *report) DP_MUST_CHECK;
/* Is `q` a short jump to a jump embedded in the bytes of `p`? Then `p` must stay as long as `q`, even if they are far apart. */
bool dp_placed_leads_into(const struct dp_placed *q, const struct dp_placed *p);

#endif
