/* SPDX-License-Identifier: MIT */
/* Inside of an image. */
#ifndef DP_PROBES_IMAGE_H
#define DP_PROBES_IMAGE_H

#include "probes/image/module.h"

struct dp_image {
	struct dp_maps maps;
	struct dp_module **module; /* [0] is the executable */
	size_t nmodules;
	char *root;
	int pid;
	bool lasting_known; /* never_unloaded.c */
};

/* called.c: the executable answers to the last part of `name`, too, unless a module has that name already. */
void dp_image_call(struct dp_image *image, const char *name);
/* To the names that the process was started by. */
void dp_image_call_as_started(struct dp_image *image);

#endif
