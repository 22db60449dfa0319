/* SPDX-License-Identifier: MIT */
#ifndef DP_SESSION_PROFILE_SAMPLER_INTERNAL_H
#define DP_SESSION_PROFILE_SAMPLER_INTERNAL_H

#include "session/profile/sampler.h"

/* sampler.c: walks the sample's stack; the number of frames, and the image that they belong to. */
size_t dp_sampler_frames(struct dp_sampler *s, const struct dp_sample *sample, uint64_t pc[DP_BACKTRACE_MAX], uint32_t *number);
/* sampler_waits.c */
struct dp_error *dp_sampler_open_waits(struct dp_sampler *s) DP_MUST_CHECK;
void dp_sampler_drain_waits(struct dp_sampler *s);
void dp_sampler_end_waits(struct dp_sampler *s);

#endif
