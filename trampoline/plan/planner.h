/* SPDX-License-Identifier: MIT */
/* Inside of the planner: what its files share. */
#ifndef DP_TRAMPOLINE_PLANNER_H
#define DP_TRAMPOLINE_PLANNER_H

#include "trampoline/arch/x86_64/decode/decode.h"
#include "trampoline/space/extents.h"
#include "trampoline/code/analysis.h"
#include "trampoline/space/sites.h"

struct dp_chunk { /* free room that stubs are put into, one behind the other; its pages are taken as they are needed */
	uint64_t next, end;
};

struct dp_planner {
	struct dp_space *space;
	struct dp_runtime runtime;
	struct dp_pages *pages;
	struct dp_sites *sites;
	struct dp_analysis *known; /* of texts that bring none */
	struct dp_chunk *chunk;
	size_t nchunks;
	struct dp_buf code; /* where stubs are generated, one after the other */
	struct dp_plan *plans; /* the last answer of dp_planner_plans(), until something is added; then NULL */
	size_t nplans;
	bool plain;       /* no neighbour is evicted */
	uint32_t variant; /* of searches, see struct dp_room: others are tried where one item's choice is in the next one's way */
};

static inline struct dp_analysis *dp_planner_known(const struct dp_planner *planner, const struct dp_text *text)
{
	return text->known ? text->known : planner->known;
}

/* ---- stubs.c ----------------------------------------------------------------------------------------------------------------
 */

struct dp_code { /* what runs behind the probe */
	const struct dp_insn *insn;
	uint8_t ninsns;
	uint64_t below; /* not 0: another stub's entry, instead of the instructions */
};
/*
 * Generates a stub where there is room for it in reach of the whole module: the request's probe (NULL: none), then `code`. Fills
 * the plan's stub, stub_end, entry, displaced and pairs.
 */
struct dp_error *dp_stubs_put(struct dp_planner *planner, const struct dp_text *text, const struct dp_request *request,
                              const struct dp_code *code, struct dp_plan *plan) DP_MUST_CHECK;
void dp_stubs_drop(struct dp_planner *planner, const struct dp_plan *plan);

/* ---- place.c ----------------------------------------------------------------------------------------------------------------
 */

/* Places one request among what stands; whatever stands stays where it is. `traps`: by a trap, which nothing but the request's
 * tactics forbids. Index of its item in *ret. */
struct dp_error *dp_place(struct dp_planner *planner, const struct dp_request *request, bool traps, uint32_t *ret) DP_MUST_CHECK;
/* Takes an item out with its stub and springboard; evicted instructions that are of no more use go with it. */
void dp_unplace(struct dp_planner *planner, uint32_t i);

/* ---- evict.c ----------------------------------------------------------------------------------------------------------------
 */

struct dp_job { /* a request's site while a place for its jump is sought */
	struct dp_planner *planner;
	const struct dp_request *request;
	struct dp_insn first;
	struct dp_item *item; /* with its stub put; site and tail still to be filled */
	bool fresh;           /* pages that are not ours yet may be taken */
	bool hurry;           /* only the forms that are most likely to fit */
	bool far;             /* the rarest forms too */
};
/* Moves neighbours out of the way: the item's plan is complete and entered if it succeeds. */
struct dp_error *dp_evict(struct dp_job *job, uint32_t *ret) DP_MUST_CHECK;

/* ---- replan.c ---------------------------------------------------------------------------------------------------------------
 */

/*
 * Takes out the plans that are in the way of the request, and whatever relies on them, and places all of them anew together with
 * it. False: that does not help, and everything is as it was.
 */
bool dp_replan(struct dp_planner *planner, const struct dp_request *request, bool traps, uint32_t *ret);

#endif
