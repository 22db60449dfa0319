/* SPDX-License-Identifier: MIT */
/* Giving back the bytes of an installation's sites. Private to remove.c and restore.c. */
#ifndef DP_INJECTOR_RESTORE_H
#define DP_INJECTOR_RESTORE_H

#include "injector/target.h"

/*
 * Restores the sites with chosen[i] (NULL: all); retired ones too: what made us give one up may have been taken back since, and
 * then our jump stands there again. A site that could not be restored is counted in the report.
 */
struct dp_error *dp_restore_held(struct dp_target *t, struct dp_installation *in, const bool *chosen, struct dp_freeze *f,
                                 struct dp_remove_report *report) DP_MUST_CHECK;
/* The same while all threads run. On an error what is not restored may be restored with all threads held. */
struct dp_error *dp_restore_live(struct dp_target *t, struct dp_installation *in, const bool *chosen,
                                 struct dp_remove_report *report) DP_MUST_CHECK;

#endif
