/* SPDX-License-Identifier: MIT */
/*
 * Where a site's jump can lead: to the stub, or to a springboard, a jump to the stub that lies where the site's jump can reach.
 * Some bytes of a jump's rel32 can be chosen, others are what they are; the places that this leaves are tried here.
 */
#ifndef DP_TRAMPOLINE_ARCH_X86_64_SPRINGBOARD_H
#define DP_TRAMPOLINE_ARCH_X86_64_SPRINGBOARD_H

#include "trampoline/space/extents.h"

/*
 * Unwinders that find no tables for a pc read so many bytes from there on, without asking whether they are mapped (libunwind's
 * unw_is_signal_frame() and is_plt_entry()). Behind our last page there may be nothing.
 */
#define DP_PC_READ 16u

/* Targets end + rel, for every rel32 that is `value` in the bits of `mask` (whole bytes). */
struct dp_rel {
	uint64_t end;
	uint32_t mask, value;
};

struct dp_room {
	const struct dp_pages *pages;
	const struct dp_space *space;
	bool fresh;      /* may take pages that are not ours yet; else only unused bytes of ours */
	unsigned budget; /* places that may still be looked at */
	uint32_t variant; /* 0: the places that cost least first; else any other order, the same for the same number */
	uint8_t ntaken;  /* springboards that are not put yet */
	struct {
		uint64_t at;
		uint8_t size;
	} taken[3];
};

/* Is this place as good as it looks? True ends the search. */
typedef bool (*dp_room_fn)(void *data, uint64_t at, uint8_t size);
/*
 * Calls `accept` with places for a springboard to `entry` until it accepts one: first in our own pages, then, where allowed, in
 * fresh ones near `entry`. At most one place of a page is tried where the jump's two low bytes are free.
 */
bool dp_room_each(struct dp_room *room, const struct dp_rel *rel, uint64_t entry, dp_room_fn accept, void *data);
/* False if there is no use in looking for places for this one: a quick look. */
bool dp_room_possible(const struct dp_room *room, const struct dp_rel *rel);
/* Could `rel` have this target? */
bool dp_rel_reaches(const struct dp_rel *rel, uint64_t target);

/* Writes the springboard and fills its `size` bytes. DP_TAG_NO_SPACE if it takes more. */
struct dp_error *dp_springboard_put(struct dp_pages *pages, uint64_t at, uint8_t size, uint64_t entry) DP_MUST_CHECK;

#endif
