/* SPDX-License-Identifier: MIT */
/* Which code may hold a lock that we need. Private to safe*.c. */
#ifndef DP_INJECTOR_LTTNG_SAFE_SAFE_RANGES_H
#define DP_INJECTOR_LTTNG_SAFE_SAFE_RANGES_H

#include "probes/probes.h"

struct dp_code { /* an executable segment of a module */
	uint64_t start, end;
	const uint8_t *bytes;
	struct dp_module *module;
	bool libc;
};
struct dp_ban {
	uint64_t start, end;
	const char *what;
};
struct dp_ranges {
	struct dp_code *code; /* ascending */
	size_t ncode;
	struct dp_ban *ban; /* ascending, disjoint */
	size_t nban;
	uint64_t low, high; /* of all bans */
};
struct dp_error *dp_ranges_create(struct dp_image *image, uint64_t own, uint64_t own_size, struct dp_ranges *ret) DP_MUST_CHECK;
/* The code only: nothing is banned. */
struct dp_error *dp_ranges_of_code(struct dp_image *image, struct dp_ranges *ret) DP_MUST_CHECK;
void dp_ranges_fini(struct dp_ranges *r);
const struct dp_code *dp_ranges_code(const struct dp_ranges *r, uint64_t addr);
const struct dp_ban *dp_ranges_ban(const struct dp_ranges *r, uint64_t addr);
/* Could `addr` be a return address? Checks only the bytes before it. */
bool dp_code_after_call(const struct dp_code *c, uint64_t addr);

#endif
