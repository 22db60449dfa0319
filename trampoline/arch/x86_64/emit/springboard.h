/* SPDX-License-Identifier: MIT */
/*
 * Finds where a site's jump can lead: to the stub, or to a springboard, a jump to the stub at an address that the site's jump
 * reaches. Some bytes of a jump's rel32 can be chosen, others are given; the remaining places are tried here.
 */
#ifndef DP_TRAMPOLINE_ARCH_X86_64_EMIT_SPRINGBOARD_H
#define DP_TRAMPOLINE_ARCH_X86_64_EMIT_SPRINGBOARD_H

#include "trampoline/space/extents.h"

/*
 * Unwinders that find no tables for a pc read so many bytes from there on, without checking that they are mapped (libunwind's
 * unw_is_signal_frame() and is_plt_entry()). After our last page nothing may be mapped.
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
	bool fresh;      /* may take new pages; else only unused bytes of ours */
	unsigned budget; /* places that may still be tried */
	uint32_t variant; /* 0: the cheapest places first; else another order, a fixed one for each number */
	uint8_t ntaken;  /* springboards found in this search and not written yet */
	struct {
		uint64_t at;
		uint8_t size;
	} taken[3];
};

/* Checks whether this place is usable. True ends the search. */
typedef bool (*dp_room_fn)(void *data, uint64_t at, uint8_t size);
/*
 * Calls `accept` with places for a springboard to `entry` until it accepts one: first in our own pages, then, if allowed, in
 * fresh ones near `entry`. Tries at most one place in a page if the jump's two low bytes are free.
 */
bool dp_room_each(struct dp_room *room, const struct dp_rel *rel, uint64_t entry, dp_room_fn accept, void *data);
/* A quick check: false if no place can be found for `rel`. */
bool dp_room_possible(const struct dp_room *room, const struct dp_rel *rel);
/* Whether `rel` can have this target. */
bool dp_rel_reaches(const struct dp_rel *rel, uint64_t target);

/* Writes the springboard, also over an older one, and fills its `size` bytes. DP_TAG_NO_SPACE if it needs more. */
struct dp_error *dp_springboard_put(struct dp_pages *pages, uint64_t at, uint8_t size, uint64_t entry) DP_MUST_CHECK;

#endif
