/* SPDX-License-Identifier: MIT */
/* Values into a snapshot's variables, within limits that several of them share. */
#ifndef DP_PMODULES_VALUE_SHOW_H
#define DP_PMODULES_VALUE_SHOW_H

#include "pmodules/value/world_internal.h"

struct dp_show_later;
struct dp_show {
	struct dp_world *w;
	struct dp_snapshot *s;
	struct dp_limits limits; /* without zeroes */
	uint64_t budget;         /* variables that may still be made */
	bool is_cut;             /* something was left out */
	bool keeps_values;       /* for pmodules */
	bool is_copy;            /* mode fork: what is shared is not held still */
	/* What pointers point at comes when everything else is there: malloc'ed, a queue. */
	struct dp_show_later *later;
	size_t nlater, capacity, next;
};
/* Where a limit is 0, the default. */
struct dp_limits dp_limits_filled(const struct dp_limits *limits);
void dp_show_init(struct dp_show *show, struct dp_world *w, const struct dp_limits *limits, struct dp_snapshot *s);
/* All but what pointers point at, for which there is a queue. */
void dp_show(struct dp_show *show, struct dp_value *v, unsigned depth, struct dp_snap_variable *into);
/* value_plain.c: a part of `of`, if it is nothing but a number in memory that nobody will ask for; false: it has to be shown. */
bool dp_show_plain(struct dp_show *show, const struct dp_value *of, const struct dp_stype *t, uint64_t offset,
                   struct dp_snap_variable *into);
/* Follows the pointers, level by level, and ends. */
void dp_show_finish(struct dp_show *show);
/* value_member.c: pointers to members. into->number is there already. */
void dp_show_member(struct dp_show *x, struct dp_value *v, struct dp_snap_variable *into);
/* Pointers to member functions. */
void dp_show_method(struct dp_show *x, struct dp_value *v, struct dp_snap_variable *into);

#endif
