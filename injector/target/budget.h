/* SPDX-License-Identifier: MIT */
/* How much memory the rings of a process may take, and how it is divided (decision 0030). Arithmetic alone. */
#ifndef DP_INJECTOR_BUDGET_H
#define DP_INJECTOR_BUDGET_H

#include <stdint.h>

#define DP_BUDGET_LEAST (UINT64_C(256) << 10)

struct dp_budget {
	uint64_t most;  /* bytes, of all rings */
	uint64_t first; /* of them kept for the first step of each ring */
	unsigned slots; /* as many rings as there is a first step for */
};

/* What is taken where nothing was asked for: half of what is left, 64 MiB at most, or one ring of the size that was asked for. */
uint64_t dp_budget_share(uint64_t left, uint64_t asked_ring);
struct dp_budget dp_budget_split(uint64_t most, unsigned threads, unsigned slots);

#endif
