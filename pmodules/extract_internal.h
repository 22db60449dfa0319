/* SPDX-License-Identifier: MIT */
/* Inside of an extraction. */
#ifndef DP_PMODULES_EXTRACT_INTERNAL_H
#define DP_PMODULES_EXTRACT_INTERNAL_H

#include "pmodules/extract.h"
#include "pmodules/frames.h"
#include "pmodules/value_reach.h"
#include "pmodules/value_show.h"

struct dp_extract {
	struct dp_world *w;
	struct dp_frames frames;
	struct dp_extract_options options;
	struct dp_limits limits; /* without zeroes */
	struct dp_reach reach;
};

#endif
