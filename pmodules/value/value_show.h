/* SPDX-License-Identifier: MIT */
/* Turns values into a snapshot's variables, within shared limits. */
#ifndef DP_PMODULES_VALUE_VALUE_SHOW_H
#define DP_PMODULES_VALUE_VALUE_SHOW_H

#include "pmodules/value/debug_ctx_internal.h"

struct dp_show_later;
struct dp_show {
	struct dp_debug_ctx *w;
	struct dp_snapshot *s;
	struct dp_limits limits; /* defaults filled in */
	uint64_t budget;         /* variables that may still be made */
	bool is_cut;             /* something was left out */
	bool keeps_values;       /* for pmodules */
	bool is_copy;            /* mode fork: shared memory is not frozen */
	/* Queue of pointers to follow once everything else is there; malloc'ed. */
	struct dp_show_later *later;
	size_t nlater, capacity, next;
};
/* Replaces limits of 0 by the defaults. */
struct dp_limits dp_limits_filled(const struct dp_limits *limits);
void dp_show_init(struct dp_show *show, struct dp_debug_ctx *w, const struct dp_limits *limits, struct dp_snapshot *s);
/* Shows everything except the targets of pointers, which are queued. */
void dp_show(struct dp_show *show, struct dp_value *v, unsigned depth, struct dp_snap_variable *into);
/* The type's names and label in the snapshot. */
static inline void dp_show_type(struct dp_show *x, const struct dp_ctype *t, struct dp_snap_variable *into)
{
	struct dp_ctype_copy *own = dp_ctype_copy_of(t);
	into->type = own ? dp_debug_ctx_text(x->w, x->s, &own->name) : dp_snapshot_text(x->s, t->text);
	into->base_type = own ? dp_debug_ctx_text(x->w, x->s, &own->base) : dp_snapshot_text(x->s, t->base);
}
/* value_plain.c: shows a part of `of` if it is a plain number in memory whose value is not kept; false: use dp_show(). */
bool dp_show_plain(struct dp_show *show, const struct dp_value *of, const struct dp_ctype *t, uint64_t offset,
                   struct dp_snap_variable *into);
/* Follows the queued pointers, level by level, and frees the queue. */
void dp_show_finish(struct dp_show *show);
/* value_member.c: pointers to data members. into->number is already set. */
void dp_show_member(struct dp_show *x, struct dp_value *v, struct dp_snap_variable *into);
/* value_counted.c: gives a struct that is a string with a length its text. */
void dp_show_counted(struct dp_show *x, struct dp_value *v, struct dp_snap_variable *into);
/* Pointers to member functions. */
void dp_show_method(struct dp_show *x, struct dp_value *v, struct dp_snap_variable *into);

#endif
