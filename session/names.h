/* SPDX-License-Identifier: MIT */
/* A set of event names that are taken. */
#ifndef DP_SESSION_NAMES_H
#define DP_SESSION_NAMES_H

#include "base/error.h"

struct dp_names {
	char **slot; /* a hash table of copies */
	size_t size, n;
};

/* Takes the name; *fresh is false if it was taken before. */
struct dp_error *dp_names_add(struct dp_names *names, const char *name, bool *fresh) DP_MUST_CHECK;
/* Takes `base`, or the first of base_2, base_3, ... that is free; malloc'ed. */
struct dp_error *dp_names_make(struct dp_names *names, const char *base, char **ret) DP_MUST_CHECK;
void dp_names_fini(struct dp_names *names);

/* Is it a valid event name: letters, digits and _, no digit first, at most 200 characters? */
bool dp_name_valid(const char *name);

#endif
