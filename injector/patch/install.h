/* SPDX-License-Identifier: MIT */
/* State of one installation. Private to install.c, install_sites.c, install_order.c and install_inspection.c. */
#ifndef DP_INJECTOR_PATCH_INSTALL_H
#define DP_INJECTOR_PATCH_INSTALL_H

#include "injector/patch/replace/replace.h"

struct install_inspection;
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
	struct dp_replace *swap;      /* while sites are written with the threads running */
	struct install_inspection *look; /* while all threads are held: where they are */
	bool *refused;             /* of each site: refused; others may rely on it */
	enum dp_tag refused_tag;   /* tag of the last refusal */
	bool *held;                /* of each site: write it with all threads held */
	const bool *only;          /* of each site: write it in this pass; NULL: all */
	bool announced;            /* the semaphores are raised */
	bool live;                 /* text may be replaced while threads run */
};

/* ---- install.c ---- */
/* Records why all threads were or will be held, and for how long. */
void dp_install_log_why(struct install *i, const char *why);
void dp_install_note_hold(struct install *i, const struct dp_freeze *f, const char *what);

/* ---- install_order.c: what is written while threads run, and what while all are held ---- */
/*
 * Writes the sites that are guarded, or those that are not. Sites that can be written live come first. The rest is written with
 * all threads held, in as few batches as their number allows. A refused site does not affect the others. On an error none was
 * written.
 */
struct dp_error *dp_install_sites(struct install *i, bool guarded) DP_MUST_CHECK;

/* ---- install_sites.c: one site ---- */
/* Written only when the agent's handler is installed. */
static inline bool dp_install_is_guarded(const struct install *i, size_t k)
{
	return i->t->in.placed[k].guarded;
}
/* Is it still to be written in this pass? */
static inline bool dp_install_is_due(const struct install *i, size_t k, bool guarded)
{
	return dp_install_is_guarded(i, k) == guarded && !i->t->in.placed[k].written && !i->results[k].refused &&
	       (!i->only || i->only[k]);
}
bool dp_install_crosses(const struct install *i, size_t k);
/* With all threads held: checks and writes the site, or refuses it. `across`: its pages, if it crosses a page boundary. */
void dp_install_write_held(struct install *i, size_t k, struct dp_freeze *f, struct dp_replace *across);
/* Adds the site to i->swap. False if it is not refused but cannot be written live: see dp_replace_why(). */
bool dp_install_write_live(struct install *i, size_t k, struct dp_placed **below);
/* The commit of i->swap has written this site. */
void dp_install_stands(struct install *i, size_t k, struct dp_placed *below);
void dp_install_refuse(struct install *i, size_t k, enum dp_tag tag, const char *why);

/* ---- install_inspection.c: is a thread inside a window's bytes, or will it return there? ---- */
/*
 * For the windows of [from, end) that are due: create before threads are held, take while they are (O(threads)), destroy after.
 */
struct dp_error *dp_install_inspection_create(const struct install *i, size_t from, size_t end, struct install_inspection **ret) DP_MUST_CHECK;
void dp_install_inspection_take(struct install_inspection *look, const struct install *i, struct dp_freeze *f);
/* Accepts NULL. */
struct install_inspection *dp_install_inspection_destroy(struct install_inspection *look);
bool dp_install_inspection_busy(struct install *i, struct dp_freeze *f, size_t k);

#endif
