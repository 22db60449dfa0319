/* SPDX-License-Identifier: MIT */
/* One restoration under way. Private to restore.c and restore_order.c. */
#ifndef DP_INJECTOR_RESTORE_PASS_H
#define DP_INJECTOR_RESTORE_PASS_H

#include "injector/patch/restore.h"
#include "injector/patch/swap/swap.h"

enum outcome { RESTORED, FAILED, IMPOSSIBLE /* live */ };
struct pending { /* one site, in this pass */
	bool goes, waits, edited, covered;
	bool held;    /* it is for a moment when all threads are held */
	bool settled; /* it went, and what became of it is noted */
	enum outcome outcome;
	struct dp_placed *below;
};
struct restore {
	struct dp_target *t;
	struct dp_installation *in;
	const bool *chosen;     /* NULL for all */
	const bool *kept;       /* those that stay in this pass, whatever else is said of them; or NULL */
	struct dp_swap *swap;   /* live */
	struct dp_freeze *f;    /* or with all threads held */
	struct dp_swap *across; /* then: for the next site, which lies in two pages; or NULL */
	struct pending *done;
	struct dp_remove_report *report;
};

/* Gives its bytes back, or notes in r->swap that they are to be, if they are ours; IMPOSSIBLE: only with all threads held. */
enum outcome dp_restore_site(struct restore *r, size_t i);
/* Do others, later ones, rely upon its bytes: such as wait for threads to be held, or such as stay? */
bool dp_restore_in_use(const struct restore *r, size_t i, bool held);
bool dp_restore_crosses(const struct restore *r, size_t i);

#endif
