/* SPDX-License-Identifier: MIT */
/* Removal of an installation, or of some of its sites. */
#ifndef DP_INJECTOR_PATCH_REMOVE_H
#define DP_INJECTOR_PATCH_REMOVE_H

#include "injector/target/target.h"

/* Restores the text, waits until no thread is in a stub, unmaps. For t->in and for installations of earlier tools. */
struct dp_error *dp_installation_remove(struct dp_target *t, struct dp_installation *in,
                                        struct dp_remove_report *report) DP_MUST_CHECK;
/* Only restores the sites with chosen[i]: their stubs stay for threads inside them. */
struct dp_error *dp_installation_restore(struct dp_target *t, struct dp_installation *in, const bool *chosen,
                                         struct dp_remove_report *report) DP_MUST_CHECK;
/*
 * trap_disarm.c. Removes guarded sites from the text and gives the signals back to the program; the hooks stay, idle. *done is
 * false if a thread prevents it: then the guarded sites are out and the handler stays. Does nothing without traps.
 */
struct dp_error *dp_trap_disarm(struct dp_target *t, struct dp_installation *in, struct dp_remove_report *report,
                                bool *done) DP_MUST_CHECK;

#endif
