/* SPDX-License-Identifier: MIT */
/* The search for neighbours to evict: shared by its two kinds (evict.c, evict_near.c). */
#ifndef DP_TRAMPOLINE_PLAN_EVICT_H
#define DP_TRAMPOLINE_PLAN_EVICT_H

#include "trampoline/arch/x86_64/asm/encode.h"
#include "trampoline/plan/place.h"

#define DP_SEARCH_SWEEPS 4
#define DP_SEARCH_BEHIND 144u /* bytes before a site: the backward reach of a short jump, and the longest instruction */
#define DP_SEARCH_AROUND (DP_SEARCH_BEHIND + 160u + DP_CHAIN_BYTES)

struct dp_search {
	struct dp_job *job;
	/* The site's own function, if known, and those around it. The own one is analysed when it is needed: until then NULL. */
	const struct dp_sweep *sweep[DP_SEARCH_SWEEPS];
	uint8_t nsweeps;
	struct dp_range own; /* its bounds while it is not analysed; else empty */
	struct dp_range gap; /* range without any function */
	enum { DP_LOST_UNKNOWN, DP_NOT_LOST, DP_LOST } lost; /* by the analysis the site is not an instruction of its function */
	uint64_t base;
	uint8_t byte[DP_SEARCH_AROUND], state[DP_SEARCH_AROUND];
	size_t measured;
	uint8_t length[DP_SEARCH_AROUND]; /* of the first `measured` addresses: dp_search_length() */
	struct dp_room room;
	struct dp_chain knot;
	struct dp_insn victim[2];
	uint8_t nvictims;
	uint32_t entered[DP_CHAIN_HOPS]; /* items, in order */
	uint8_t nentered;
	bool held[DP_CHAIN_HOPS]; /* the springboard's place is reserved, but not written yet */
};

/* Length of the instruction at `addr` in a trusted function; 0: none starts there. */
uint8_t dp_search_length(struct dp_search *s, uint64_t addr);
/* Measures the rest of the function, or of the gap, at the first address that is not measured. */
void dp_search_measure(struct dp_search *s);
/* dp_search_length(s, s->base + x) */
static inline uint8_t dp_search_length_at(struct dp_search *s, size_t x)
{
	while (s->measured <= x)
		dp_search_measure(s);
	return s->length[x];
}
/* Whether no other jump changes or relies on one of these bytes. */
bool dp_search_untouched(const struct dp_search *s, uint64_t addr, uint8_t n);
/* The instruction at `addr`, if it certainly is one. `follows`: control reaches it from the site. */
bool dp_search_instruction(struct dp_search *s, uint64_t addr, bool follows, struct dp_insn *ret);
bool dp_search_may_move(const struct dp_search *s, const struct dp_insn *insn);
/* Solves s->knot with its share of the budget. */
bool dp_search_solve(struct dp_search *s);
/* For a solved chain: reserves the places of all springboards, until each is written. */
bool dp_search_hold(struct dp_search *s);
void dp_search_release(struct dp_search *s, uint8_t hop);
/* Enters the evicted instruction's own plan, whose jump is hop `i`; the chain's jumps in its bytes end at offset `end`. */
bool dp_search_enter_victim(struct dp_search *s, const struct dp_insn *insn, uint8_t i, uint8_t end);
/* Records the item that was entered, or drops the error; true if there was none. */
bool dp_search_note(struct dp_search *s, struct dp_error *err, uint32_t entered);
/* Removes all that was entered and releases the reserved places. */
void dp_search_take_back(struct dp_search *s);

/*
 * evict_copy.c: the stub of a site whose successor was evicted goes on with a copy of that. Otherwise it would jump back to the
 * successor's jump, which is in the middle of the site's own: processors that predict jumps by the bytes that they fetch take one
 * for the other.
 */
void dp_search_copy(struct dp_search *s);
void dp_search_uncopy(struct dp_search *s, const struct dp_plan *before);

/* evict_near.c: a short jump to a jump embedded in a neighbour. */
bool dp_search_neighbours(struct dp_search *s, uint32_t *ret);
/* The same for a site of one byte: the next instruction becomes a jump whose first byte leads there. */
bool dp_search_leads(struct dp_search *s, uint32_t *ret);

#endif
