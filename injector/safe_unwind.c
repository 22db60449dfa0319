/* SPDX-License-Identifier: MIT */
#include "injector/safe_unwind.h"

struct dp_unwinder *dp_unwinder_create(const struct dp_process *p, struct dp_image *image, const struct dp_ranges *ranges)
{
	(void)p;
	(void)image;
	(void)ranges;
	return NULL;
}

void dp_unwinder_destroy(struct dp_unwinder *u)
{
	(void)u;
}

enum dp_unwound dp_unwinder_judge(struct dp_unwinder *u, const struct dp_process *p, const struct dp_held *h, char why[128])
{
	(void)u;
	(void)p;
	(void)h;
	(void)why;
	return DP_UNWOUND_UNKNOWN;
}
