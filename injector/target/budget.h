/* SPDX-License-Identifier: MIT */
/* Memory limit for a process's rings, and how it is divided (decision 0030). Pure arithmetic. */
#ifndef DP_INJECTOR_TARGET_BUDGET_H
#define DP_INJECTOR_TARGET_BUDGET_H

#include <stdint.h>

#define DP_BUDGET_LEAST (UINT64_C(256) << 10)

struct dp_budget {
	uint64_t most;  /* bytes, for all rings together */
	uint64_t first; /* part of `most` reserved for the first step of each ring */
	unsigned slots; /* number of rings */
};

/* Default limit: half of `left`, but at most 64 MiB, or one ring of the requested size if that is larger. */
uint64_t dp_budget_share(uint64_t left, uint64_t asked_ring);
struct dp_budget dp_budget_split(uint64_t most, unsigned threads, unsigned slots);

#endif
