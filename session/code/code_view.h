/* SPDX-License-Identifier: MIT */
/* What the planner must know of each module's code (struct dp_text). It is made once for each module, from its file. */
#ifndef DP_SESSION_CODE_CODE_VIEW_H
#define DP_SESSION_CODE_CODE_VIEW_H

#include "probes/probes.h"
#include "trampoline/trampoline.h"

struct dp_code_view;
struct dp_error *dp_code_view_create(struct dp_image *image, struct dp_code_view **ret) DP_MUST_CHECK;
struct dp_code_view *dp_code_view_destroy(struct dp_code_view *view);
/* The text with the function around `site`; valid until the next call. DP_TAG_NOT_CODE if the site is in no module. */
struct dp_error *dp_code_view_get(struct dp_code_view *view, const struct dp_site *site,
                                  const struct dp_text **ret) DP_MUST_CHECK;

/* The directory for compiled unwind tables: dynprobe in $XDG_CACHE_HOME or ~/.cache. NULL if neither is set. Malloc'ed. */
char *dp_cache_dir(void);

#endif
