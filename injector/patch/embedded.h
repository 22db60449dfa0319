/* SPDX-License-Identifier: MIT */
/*
 * Jumps embedded in the text, between the starts of instructions. A short jump leads to each. A thread may be preempted or get a
 * signal between the two; its pc is then an address inside the program's text that is no instruction of the program. So the short
 * jumps are removed first, then each thread is checked, and only then the bytes around the embedded jumps are restored.
 */
#ifndef DP_INJECTOR_PATCH_EMBEDDED_H
#define DP_INJECTOR_PATCH_EMBEDDED_H

#include "injector/target/target.h"

struct dp_embedded {
	struct dp_installation *in;
	struct dp_pc_pair *at; /* stub: the embedded jump, ascending; original: the site that leads there */
	size_t n;
	bool *host; /* of each site: an embedded jump lies in its bytes */
};
/* Installed embedded jumps in the bytes of sites with chosen[i] (NULL: all). */
struct dp_error *dp_embedded_find(struct dp_installation *in, const bool *chosen, struct dp_embedded *ret) DP_MUST_CHECK;
void dp_embedded_fini(struct dp_embedded *hidden);
/*
 * Call when the sites that led there have their own bytes again. Moves threads of `f` that are at one of the jumps back to the
 * site. False, with the reason in `why`, if one has a signal frame that returns there.
 */
bool dp_embedded_leave(struct dp_target *t, const struct dp_embedded *hidden, struct dp_freeze *f, char why[128]);
/* The same for every thread of a running process, one at a time. */
struct dp_error *dp_embedded_leave_live(struct dp_target *t, const struct dp_embedded *hidden, struct dp_remove_report *report,
                                      bool *left) DP_MUST_CHECK;

#endif
