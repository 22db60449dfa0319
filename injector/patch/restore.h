/* SPDX-License-Identifier: MIT */
/* Giving back the bytes of an installation's sites. Private to remove.c, trap_disarm.c, restore.c and restore_order.c. */
#ifndef DP_INJECTOR_RESTORE_H
#define DP_INJECTOR_RESTORE_H

#include "injector/target/target.h"

/*
 * Restores the sites with chosen[i] (NULL: all); retired ones too: what made us give one up may have been taken back since, and
 * then our jump stands there again. A site that could not be restored is counted in the report. While all threads run, as far as
 * the text allows it; else all are held, again and again for a moment: report->live, report->why_frozen. On an error some sites
 * may be left as they are: to be called again.
 */
struct dp_error *dp_restore(struct dp_target *t, struct dp_installation *in, const bool *chosen,
                            struct dp_remove_report *report) DP_MUST_CHECK;
/* The same with all threads held by the caller. */
struct dp_error *dp_restore_held(struct dp_target *t, struct dp_installation *in, const bool *chosen, struct dp_freeze *f,
                                 struct dp_remove_report *report) DP_MUST_CHECK;

#endif
