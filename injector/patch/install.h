/* SPDX-License-Identifier: MIT */
/* One installation under way. Private to install.c, install_sites.c, install_order.c and install_look.c. */
#ifndef DP_INJECTOR_INSTALL_H
#define DP_INJECTOR_INSTALL_H

#include "injector/patch/swap/swap.h"

struct install_look;
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
	struct dp_swap *swap;      /* while sites are written live */
	struct install_look *look; /* while all threads are held: where they stand */
	bool *refused;             /* of each site, for those that rely upon it */
	enum dp_tag refused_tag;   /* of the last one */
	bool *held;                /* of each site: it is for a moment when all threads are held */
	const bool *only;          /* of each site: it is for now; NULL: all are */
	bool announced;            /* the semaphores are up */
	bool live;                 /* text may be replaced while threads run */
};

/* ---- install.c ---- */
/* All threads were, or are to be, held: notes why, and for how long. */
void dp_install_say_why(struct install *i, const char *why);
void dp_install_note_hold(struct install *i, const struct dp_freeze *f, const char *what);

/* ---- install_order.c: what is written while all threads run, and what with all held ---- */
/*
 * Writes those sites that are guarded, or those that are not: what can be written live first, then the others, with all threads held, for as
 * few at a time as their number makes necessary. One that is refused leaves the others alone. An error: none was written.
 */
struct dp_error *dp_install_sites(struct install *i, bool guarded) DP_MUST_CHECK;

/* ---- install_sites.c: one site ---- */
/* Goes in when the agent's handler stands. */
static inline bool dp_install_is_guarded(const struct install *i, size_t k)
{
	return i->t->in.placed[k].guarded;
}
/* Is it still to be written, in this pass? */
static inline bool dp_install_is_due(const struct install *i, size_t k, bool guarded)
{
	return dp_install_is_guarded(i, k) == guarded && !i->t->in.placed[k].written && !i->results[k].refused &&
	       (!i->only || i->only[k]);
}
bool dp_install_crosses(const struct install *i, size_t k);
/* With all threads held: checks and writes it, or refuses it. `across`: its pages, if it crosses from one to another. */
void dp_install_write_held(struct install *i, size_t k, struct dp_freeze *f, struct dp_swap *across);
/* Into i->swap. False if it is not refused, and cannot be put there: dp_swap_why(). */
bool dp_install_write_live(struct install *i, size_t k, struct dp_placed **below);
/* What was put into i->swap stands. */
void dp_install_stands(struct install *i, size_t k, struct dp_placed *below);
void dp_install_refuse(struct install *i, size_t k, enum dp_tag tag, const char *why);

/* ---- install_look.c: does a thread stand in a window's bytes, or will it return there? ---- */
/* For the windows of [from, end) that are due: before threads are held, while they are (O(threads)), and when it is over. */
struct dp_error *dp_install_look_create(const struct install *i, size_t from, size_t end, struct install_look **ret) DP_MUST_CHECK;
void dp_install_look_take(struct install_look *look, const struct install *i, struct dp_freeze *f);
/* Accepts NULL. */
struct install_look *dp_install_look_destroy(struct install_look *look);
bool dp_install_look_busy(struct install *i, struct dp_freeze *f, size_t k);

#endif
