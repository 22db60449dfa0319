/* SPDX-License-Identifier: MIT */
/* One installation under way. Private to install.c and install_sites.c. */
#ifndef DP_INJECTOR_INSTALL_H
#define DP_INJECTOR_INSTALL_H

#include "injector/swap.h"

struct install {
	struct dp_target *t;
	const struct dp_extent *extents;
	size_t nextents;
	const struct dp_plan *plans;
	size_t nplans;
	const void *unwind;
	size_t unwind_size;
	struct dp_install_result *results;
	struct dp_install_stats *stats;
	struct dp_swap *swap; /* while sites are written live */
	bool *refused;        /* of each site, for those that rely upon it */
	enum dp_tag refused_tag; /* of the last one */
	bool announced;          /* the semaphores are up */
};

/* All threads are held: writes those sites that are guarded, or those that are not. One that is refused leaves the others alone.
 */
void dp_install_held(struct install *i, struct dp_freeze *f, bool guarded);
/* Nobody is held. An error other than DP_TAG_GONE: what is not written yet may be written with all threads held. */
struct dp_error *dp_install_live(struct install *i) DP_MUST_CHECK;
/* Goes in when the agent's handler stands. */
static inline bool dp_install_is_guarded(const struct install *i, size_t k)
{
	return i->t->in.placed[k].guarded;
}

#endif
