/* SPDX-License-Identifier: MIT */
/* Why a thread stands where it stands. */
#include "pmodules/extract_internal.h"

void dp_extract_fault(struct dp_extract *x, const struct dp_still_thread *t, struct dp_snap_thread *into)
{
	(void)x;
	(void)t;
	(void)into;
}
