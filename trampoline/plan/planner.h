/* SPDX-License-Identifier: MIT */
/* Private to the planner: shared by its files. */
#ifndef DP_TRAMPOLINE_PLAN_PLANNER_H
#define DP_TRAMPOLINE_PLAN_PLANNER_H

#include "trampoline/arch/x86_64/decode/decode.h"
#include "trampoline/space/extents.h"
#include "trampoline/arch/x86_64/decode/analysis.h"
#include "trampoline/space/sites.h"

struct dp_chunk { /* free room for stubs, one after the other; its pages are allocated as needed */
	uint64_t next, end;
};

struct dp_planner {
	struct dp_space *space;
	struct dp_runtime runtime;
	struct dp_pages *pages;
	struct dp_sites *sites;
	struct dp_analysis *known; /* for texts without their own */
	struct dp_chunk *chunk;
	size_t nchunks;
	struct dp_buf code; /* scratch buffer for stubs */
	struct dp_plan *plans; /* the last result of dp_planner_plans(), until something is added; then NULL */
	size_t nplans;
	bool plain;       /* evict no neighbours */
	uint32_t variant; /* of searches, see struct dp_room: changed when one item's choice is in the next one's way */
};

static inline struct dp_analysis *dp_planner_known(const struct dp_planner *planner, const struct dp_text *text)
{
	return text->known ? text->known : planner->known;
}

/* ---- stubs.c ---------------------------------------------------------------------------------------------------------- */

struct dp_stub_tail { /* what a stub runs after the probe */
	const struct dp_insn *insn;
	uint8_t ninsns;
	uint64_t below; /* not 0: another stub's entry, instead of the instructions */
};
/*
 * Generates a stub in free room within reach of the whole module: the request's probe (NULL: none), then `code`. Fills the plan's
 * stub, stub_end, entry, displaced and pairs.
 */
struct dp_error *dp_stubs_put(struct dp_planner *planner, const struct dp_text *text, const struct dp_request *request,
                              const struct dp_stub_tail *code, struct dp_plan *plan) DP_MUST_CHECK;
void dp_stubs_drop(struct dp_planner *planner, const struct dp_plan *plan);
/*
 * Puts the next instruction in the place of the jump back at the end of the stub, which goes back after that one. False: there is
 * no room, and nothing has changed.
 */
bool dp_stubs_extend(struct dp_planner *planner, const struct dp_insn *insn, struct dp_plan *plan);
/* Undoes that: `plan` is as before, `longer` as it became. */
void dp_stubs_cut(struct dp_planner *planner, const struct dp_plan *plan, struct dp_plan *longer);

/* ---- place.c ---------------------------------------------------------------------------------------------------------- */

/*
 * Places one request among the existing plans, which do not move. `traps`: with a trap, which only the request's tactics can
 * forbid. Index of its item in *ret.
 */
struct dp_error *dp_place(struct dp_planner *planner, const struct dp_request *request, bool traps, uint32_t *ret) DP_MUST_CHECK;
/* Removes an item with its stub and springboard, and evicted instructions that are no longer needed. */
void dp_unplace(struct dp_planner *planner, uint32_t i);

/* ---- evict.c ---------------------------------------------------------------------------------------------------------- */

struct dp_job { /* a request's site during the search for a place for its jump */
	struct dp_planner *planner;
	const struct dp_request *request;
	struct dp_insn first;
	struct dp_item *item; /* with its stub written; site and tail not filled yet */
	bool fresh;           /* new pages may be taken */
	bool hurry;           /* only the forms that are most likely to fit */
	bool far;             /* the rarest forms too */
};
/* Evicts neighbours. On success the item's plan is complete and entered. */
struct dp_error *dp_evict(struct dp_job *job, uint32_t *ret) DP_MUST_CHECK;

/* ---- replan.c --------------------------------------------------------------------------------------------------------- */

/*
 * Removes the plans that are in the way of the request, and all that rely on them, and places all of them anew together with it.
 * False: that does not help, and nothing has changed.
 */
bool dp_replan(struct dp_planner *planner, const struct dp_request *request, bool traps, uint32_t *ret);

#endif
