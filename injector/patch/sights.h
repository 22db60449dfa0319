/* SPDX-License-Identifier: MIT */
/*
 * What stands at thousands of sites, seen at one look: page by page, for the kernel is asked once for many of them. Made at the
 * first look; kept with the installation (in->sights).
 */
#ifndef DP_INJECTOR_SIGHTS_H
#define DP_INJECTOR_SIGHTS_H

#include "injector/target/target.h"

/* What should stand at site i: its own bytes, and over them what later sites of the same group have written. */
void dp_placed_expected(const struct dp_installation *in, size_t i, uint8_t *bytes);

struct dp_sights; /* opaque */
/* Accepts NULL. */
struct dp_sights *dp_sights_destroy(struct dp_sights *s);
/* What is expected may be another thing from now on: a site was given up. */
void dp_sights_forget(struct dp_installation *in);
/*
 * Numbers of those sites of t->in that stand and whose bytes are not as expected, or cannot be read; ascending. Valid until the
 * next call.
 */
struct dp_error *dp_sights_look(struct dp_target *t, const size_t **ret, size_t *n) DP_MUST_CHECK;

#endif
