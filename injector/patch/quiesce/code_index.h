/* SPDX-License-Identifier: MIT */
/*
 * Where an installation's code and its sites are, sorted: for questions that are asked of every word of a stack while its thread
 * is held, and of every site. Kept with the installation (in->index), whose sites have to stay where they are in memory
 * meanwhile.
 */
#ifndef DP_INJECTOR_CODE_INDEX_H
#define DP_INJECTOR_CODE_INDEX_H

#include "injector/target/target.h"

struct dp_code_index; /* opaque */
/* NULL without memory: then everything is asked of the installation itself, which takes longer. */
struct dp_code_index *dp_code_index_create(const struct dp_installation *in);
/* Accepts NULL. To be dropped before anything is unmapped. */
struct dp_code_index *dp_code_index_destroy(struct dp_code_index *x);
/* Makes in->index anew, of what is mapped now. */
void dp_installation_index(struct dp_installation *in);
bool dp_code_index_holds(const struct dp_code_index *x, uint64_t pc);
/* The first pair with that stub address, of a stub or of a jump that is hidden in the text; NULL if there is none. */
const struct dp_pc_pair *dp_code_index_pair(const struct dp_code_index *x, uint64_t pc);

/*
 * Sites whose address lies in [from, end), ascending by address (without an index: by their number). dp_near_next() gives their
 * numbers in in->placed, and SIZE_MAX behind the last one.
 */
struct dp_near {
	const struct dp_installation *in;
	uint64_t from, end;
	size_t at;
	bool leading;
};
struct dp_near dp_near(const struct dp_installation *in, uint64_t from, uint64_t end);
/* Sites whose bytes are a short jump to [from, end): dp_placed_leads_into() may be true of these and of no others. */
struct dp_near dp_near_leading(const struct dp_installation *in, uint64_t from, uint64_t end);
size_t dp_near_next(struct dp_near *near);

/* Of those with a byte in [addr, addr + len), or nearly so: the one with the greatest number below `i`, or the least above it. */
size_t dp_near_before(const struct dp_installation *in, uint64_t addr, size_t len, size_t i);
size_t dp_near_after(const struct dp_installation *in, uint64_t addr, size_t len, size_t i);
/* All that may have a byte in [addr, addr + len). */
struct dp_near dp_near_bytes(const struct dp_installation *in, uint64_t addr, size_t len);

/* Where the short jump that a site's bytes are leads to; 0 if they are none. */
uint64_t dp_placed_leads_to(const struct dp_placed *p);

#endif
