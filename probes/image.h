/* SPDX-License-Identifier: MIT */
/* Inside of an image. */
#ifndef DP_PROBES_IMAGE_H
#define DP_PROBES_IMAGE_H

#include "probes/module.h"

struct dp_image {
	struct dp_maps maps;
	struct dp_module **module; /* [0] is the executable */
	size_t nmodules;
	char *root;
	int pid;
	bool lasting_known; /* lasting.c */
};

#endif
