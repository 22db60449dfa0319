/* SPDX-License-Identifier: MIT */
/* Where a site's jump leads: to the stub, or to a springboard, a jump to the stub that lies where the site's jump can reach. */
#ifndef DP_TRAMPOLINE_ARCH_X86_64_SPRINGBOARD_H
#define DP_TRAMPOLINE_ARCH_X86_64_SPRINGBOARD_H

#include "trampoline/arch/x86_64/tactics.h"
#include "trampoline/extents.h"

struct dp_landing {
	struct dp_jump jump; /* the one of the fit's that was chosen */
	uint64_t target;     /* where it leads */
	uint8_t springboard; /* size of the springboard put there; 0: the target is the stub */
};

/*
 * Chooses among the `n` jumps: one that reaches `entry` itself, else one that reaches unused bytes of our pages, else one that
 * reaches a free page, near `near` if possible. Puts the springboard into `pages`. DP_TAG_NO_SPACE if there is no room.
 */
struct dp_error *dp_springboard_place(struct dp_pages *pages, const struct dp_space *space, const struct dp_jump *jumps, size_t n,
                                      uint64_t entry, struct dp_landing *ret) DP_MUST_CHECK;

#endif
