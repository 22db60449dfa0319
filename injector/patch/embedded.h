/* SPDX-License-Identifier: MIT */
/*
 * Jumps hidden in the text itself, between the starts of instructions. A short jump leads to one; a thread may lose its processor, or
 * get a signal, between the two, and then stands at an address that is the program's and means nothing to the program. So the short
 * jumps go first, then each thread is looked at, and only then the bytes around the hidden ones are given back.
 */
#ifndef DP_INJECTOR_HIDDEN_H
#define DP_INJECTOR_HIDDEN_H

#include "injector/target/target.h"

struct dp_embedded {
	struct dp_installation *in;
	struct dp_pc_pair *at; /* stub: the hidden jump, ascending; original: the site that leads there */
	size_t n;
	bool *host; /* of each site: such a jump lies in its bytes */
};
/* Those in the bytes of sites with chosen[i] (NULL: all) that stand. */
struct dp_error *dp_embedded_find(struct dp_installation *in, const bool *chosen, struct dp_embedded *ret) DP_MUST_CHECK;
void dp_embedded_fini(struct dp_embedded *hidden);
/*
 * Where the sites that led there have their own bytes again: moves the threads of `f` that stand at one of the jumps to the site. False,
 * with the reason in `why`, if one has a signal frame that returns there.
 */
bool dp_embedded_leave(struct dp_target *t, const struct dp_embedded *hidden, struct dp_freeze *f, char why[128]);
/* The same for every thread of a running process, one after the other. */
struct dp_error *dp_embedded_leave_live(struct dp_target *t, const struct dp_embedded *hidden, struct dp_remove_report *report,
                                      bool *left) DP_MUST_CHECK;

#endif
