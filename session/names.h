/* SPDX-License-Identifier: MIT */
/* A set of event names, to keep them unique. */
#ifndef DP_SESSION_NAMES_H
#define DP_SESSION_NAMES_H

#include "base/error.h"

struct dp_names {
	char **slot; /* a hash table of copies */
	size_t size, n;
};

/* Adds the name; *fresh is false if the set had it already. */
struct dp_error *dp_names_add(struct dp_names *names, const char *name, bool *fresh) DP_MUST_CHECK;
/* Adds `base`, or base_2, base_3, ... if the set has it, and returns what it added; malloc'ed. */
struct dp_error *dp_names_make(struct dp_names *names, const char *base, char **ret) DP_MUST_CHECK;
void dp_names_fini(struct dp_names *names);

/* An event name has letters, digits and _, does not begin with a digit, and is at most 200 characters long. */
bool dp_name_valid(const char *name);

#endif
