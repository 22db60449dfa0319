/* SPDX-License-Identifier: MIT */
/* Checks what any set of plans must guarantee, on a copy of the module's code. */
#ifndef DP_TESTS_TRAMPOLINE_HELPER_PLANS_H
#define DP_TESTS_TRAMPOLINE_HELPER_PLANS_H

#include "helper_world.h"

/*
 * Applies all plans of the world's planner in their order: each finds the bytes that it expects. Then each patched head leads,
 * jump by jump and through springboards, to its stub; bytes that plans rely on are unchanged, and so is every other byte. Removed
 * in the opposite order, the plans leave the original bytes. Returns how many belong to probes or hooks. Freezes the world.
 */
size_t helper_check_plans(struct world *w, const struct helper_module *m);

#endif
