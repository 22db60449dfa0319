/* SPDX-License-Identifier: MIT */
/*
 * Where an installation's code is, for questions that are asked of every word of a stack while its thread is held, and of every
 * site. Made before the first of them, dropped before anything is unmapped.
 */
#ifndef DP_INJECTOR_CODE_INDEX_H
#define DP_INJECTOR_CODE_INDEX_H

#include "injector/target.h"

struct dp_code_index; /* opaque */
/* NULL without memory: then everything is asked of the installation itself. */
struct dp_code_index *dp_code_index_create(const struct dp_installation *in);
/* Accepts NULL. */
struct dp_code_index *dp_code_index_destroy(struct dp_code_index *x);
bool dp_code_index_holds(const struct dp_code_index *x, uint64_t pc);
/* The pair of a pc that is not in our regions: of a jump that is hidden in the text. NULL if it is none. */
const struct dp_pc_pair *dp_code_index_hidden(const struct dp_code_index *x, uint64_t pc);
/* Has no other site a byte in common with site i? (False may also mean that it lies near.) */
bool dp_code_index_alone(const struct dp_code_index *x, size_t i);

#endif
