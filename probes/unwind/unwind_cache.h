/* SPDX-License-Identifier: MIT */
/*
 * The rows of a segment, kept in a file named by build-id, so that the next attach need not compile them. A cache is a
 * help, never a condition: what cannot be read, or is damaged, is compiled again; what cannot be written is not kept.
 */
#ifndef DP_PROBES_UNWIND_CACHE_H
#define DP_PROBES_UNWIND_CACHE_H

#include "probes/unwind/unwind_rows.h"

struct dp_unwind_key {
	const char *dir;      /* created when missing, for this user only */
	const char *build_id; /* hexadecimal digits */
	uint64_t start, end;  /* of the segment, in the file's addresses */
};

/* Fills an initialised `ret`; false leaves it as it was. */
bool dp_unwind_cache_load(const struct dp_unwind_key *key, struct dp_unwind_rows *ret);
void dp_unwind_cache_store(const struct dp_unwind_key *key, const struct dp_unwind_rows *rows);

#endif
