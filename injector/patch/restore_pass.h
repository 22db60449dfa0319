/* SPDX-License-Identifier: MIT */
/* State of one restoration. Private to restore.c and restore_order.c. */
#ifndef DP_INJECTOR_PATCH_RESTORE_PASS_H
#define DP_INJECTOR_PATCH_RESTORE_PASS_H

#include "injector/patch/replace/replace.h"
#include "injector/patch/restore.h"

enum outcome { RESTORED, FAILED, IMPOSSIBLE /* live */ };
struct pending { /* one site, in this pass */
	bool goes, waits, edited, covered;
	bool held;    /* only while all threads are held */
	bool settled; /* restored, and its result is recorded */
	enum outcome outcome;
	struct dp_placed *below;
};
struct restore {
	struct dp_target *t;
	struct dp_installation *in;
	const bool *chosen;        /* NULL for all */
	const bool *kept;          /* sites that stay in this pass in any case; or NULL */
	struct dp_replace *swap;   /* live */
	struct dp_freeze *f;       /* or: all threads held */
	struct dp_replace *across; /* with all held: for the next site, which crosses pages; or NULL */
	struct pending *done;
	struct dp_image *seen; /* the mappings, as they were last read in this pass; or NULL */
	struct dp_remove_report *report;
};

/* Restores its bytes, or adds that to r->swap, if they are ours. IMPOSSIBLE: only with all threads held. */
enum outcome dp_restore_site(struct restore *r, size_t i);
/* Do later sites rely on its bytes, because they wait for a hold or because they stay? */
bool dp_restore_in_use(const struct restore *r, size_t i, bool held);
bool dp_restore_crosses(const struct restore *r, size_t i);

#endif
