/* SPDX-License-Identifier: MIT */
/*
 * Caches the compiled rows of a segment in a file named by build-id. It is only an optimization: an unreadable or damaged file is
 * ignored and the rows are compiled again; write errors are ignored.
 */
#ifndef DP_PROBES_UNWIND_UNWIND_CACHE_H
#define DP_PROBES_UNWIND_UNWIND_CACHE_H

#include "probes/unwind/unwind_rows.h"

struct dp_unwind_key {
	const char *dir;      /* created when needed, for this user only */
	const char *build_id; /* hex digits */
	uint64_t start, end;  /* of the segment, file addresses */
};

/* Fills `ret`, which must be initialised. On failure returns false and leaves it unchanged. */
bool dp_unwind_cache_load(const struct dp_unwind_key *key, struct dp_unwind_rows *ret);
void dp_unwind_cache_store(const struct dp_unwind_key *key, const struct dp_unwind_rows *rows);

#endif
