/* SPDX-License-Identifier: MIT */
/*
 * Compares the text at thousands of sites with what it should be, page by page, because one system call reads many pages. Created
 * at the first use; kept with the installation (in->sights).
 */
#ifndef DP_INJECTOR_PATCH_SIGHTS_H
#define DP_INJECTOR_PATCH_SIGHTS_H

#include "injector/target/target.h"

/* The bytes that should be at site i: its own, overwritten by those of later sites of the same group. */
void dp_placed_expected(const struct dp_installation *in, size_t i, uint8_t *bytes);

struct dp_sights; /* opaque */
/* Accepts NULL. */
struct dp_sights *dp_sights_destroy(struct dp_sights *s);
/* A site was given up, so the expected bytes may differ from now on. */
void dp_sights_forget(struct dp_installation *in);
/* Ascending indices of installed sites of t->in whose bytes differ or cannot be read. Valid until the next call. */
struct dp_error *dp_sights_inspect(struct dp_target *t, const size_t **ret, size_t *n) DP_MUST_CHECK;

#endif
