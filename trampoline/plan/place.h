/* SPDX-License-Identifier: MIT */
/* Shared by placing a site and evicting its neighbours. */
#ifndef DP_TRAMPOLINE_PLAN_PLACE_H
#define DP_TRAMPOLINE_PLAN_PLACE_H

#include "trampoline/arch/x86_64/tactics/tactics.h"
#include "trampoline/plan/planner.h"

struct dp_ground { /* current bytes at a site and after it */
	uint8_t byte[DP_CHAIN_BYTES], state[DP_CHAIN_BYTES];
};

void dp_room_init(struct dp_room *room, const struct dp_planner *planner, const struct dp_job *job);
/* A blank item at `site` with the file's bytes; without a probe if `request` is NULL. */
void dp_item_init(struct dp_item *item, const struct dp_request *request, const struct dp_text *text, uint64_t site);
/*
 * Writes the hop's springboard, copies the plan's bytes from the chain (NULL: they are set), and enters the item, whose stub must
 * be written and whose tactic, len and changed must be set. On failure only the stub is left.
 */
struct dp_error *dp_item_enter(struct dp_planner *planner, struct dp_item *item, const struct dp_chain *knot,
                               const struct dp_hop *hop, uint32_t *ret) DP_MUST_CHECK;

/*
 * evict_copy.c: an evicted instruction is going to get a probe. A copy of it in another stub becomes a jump to its springboard.
 * False: there is no room for that jump.
 */
bool dp_copies_lead(struct dp_planner *planner, const struct dp_item *victim);

#endif
