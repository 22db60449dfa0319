/* SPDX-License-Identifier: MIT */
/*
 * Sorted ranges of an installation's code and sites, for queries about every word of a stack while its thread is held, and about
 * every site. Kept with the installation (in->index); its sites must not move in memory meanwhile.
 */
#ifndef DP_INJECTOR_PATCH_QUIESCE_CODE_INDEX_H
#define DP_INJECTOR_PATCH_QUIESCE_CODE_INDEX_H

#include "injector/target/target.h"

struct dp_code_index; /* opaque */
/* NULL without memory: callers then search the installation itself, which is slower. */
struct dp_code_index *dp_code_index_create(const struct dp_installation *in);
/* Accepts NULL. Destroy it before anything is unmapped. */
struct dp_code_index *dp_code_index_destroy(struct dp_code_index *x);
/* Rebuilds in->index from what is mapped now. */
void dp_installation_index(struct dp_installation *in);
bool dp_code_index_holds(const struct dp_code_index *x, uint64_t pc);
/* The first pair with that stub address, of a stub or of an embedded jump; NULL if there is none. */
const struct dp_pc_pair *dp_code_index_pair(const struct dp_code_index *x, uint64_t pc);

/*
 * Sites with an address in [from, end), by ascending address (without an index: by number). dp_near_next() returns their indices
 * in in->placed, and SIZE_MAX at the end.
 */
struct dp_near {
	const struct dp_installation *in;
	uint64_t from, end;
	size_t at;
	bool leading;
};
struct dp_near dp_near(const struct dp_installation *in, uint64_t from, uint64_t end);
/* Sites whose bytes are a short jump into [from, end): only for these can dp_placed_leads_into() be true. */
struct dp_near dp_near_leading(const struct dp_installation *in, uint64_t from, uint64_t end);
size_t dp_near_next(struct dp_near *near);

/* Among sites with a byte in or near [addr, addr + len): the greatest index below `i`, or the least above it. */
size_t dp_near_before(const struct dp_installation *in, uint64_t addr, size_t len, size_t i);
size_t dp_near_after(const struct dp_installation *in, uint64_t addr, size_t len, size_t i);
/* All sites that may have a byte in [addr, addr + len). */
struct dp_near dp_near_bytes(const struct dp_installation *in, uint64_t addr, size_t len);

/* Target of the short jump in a site's bytes; 0 if they are not one. */
uint64_t dp_placed_leads_to(const struct dp_placed *p);

#endif
