/* SPDX-License-Identifier: MIT */
/* Private to the extraction. */
#ifndef DP_PMODULES_CAPTURE_EXTRACT_INTERNAL_H
#define DP_PMODULES_CAPTURE_EXTRACT_INTERNAL_H

#include "pmodules/capture/extract.h"
#include "pmodules/frames/frames.h"
#include "pmodules/value/value_global.h"
#include "pmodules/value/value_reach.h"
#include "pmodules/value/value_show.h"

/* The requested variables. They are looked up once: the next use may be while the process is held. */
struct dp_extract_list {
	struct dp_global *global;
	size_t n, room;
	bool *found; /* for each name; or NULL */
	bool is_known;
};

struct dp_extract {
	struct dp_debug_ctx *w;
	struct dp_frames frames;
	struct dp_extract_options options;
	struct dp_limits limits; /* defaults filled in */
	struct dp_reach reach;
	struct dp_extract_list globals, thread_locals;
};

/* extract_globals.c */
void dp_extract_list_fini(struct dp_extract_list *list);

#endif
