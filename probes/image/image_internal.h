/* SPDX-License-Identifier: MIT */
/* Internals of an image. */
#ifndef DP_PROBES_IMAGE_IMAGE_INTERNAL_H
#define DP_PROBES_IMAGE_IMAGE_INTERNAL_H

#include "probes/image/module.h"
#include "probes/image/perf_map.h"

struct dp_image {
	struct dp_maps maps;
	struct dp_module **module; /* [0] is the executable */
	size_t nmodules;
	char *root;
	int pid;
	uint64_t serial;
	struct dp_image *later; /* image_renew.c: newer ones, the newest first */
	unsigned nlater;
	struct dp_code_names names;   /* find: NULL if there are none */
	bool lasting_known;           /* never_unloaded.c */
	struct dp_module *translator; /* translated.c */
	bool translator_known;
	struct dp_perf_map *perf_map; /* perf_map.c; NULL: not asked yet */
};

/* image_names.c: gives a new image its serial number. */
void dp_image_number(struct dp_image *image);
/* module_names.c: adds the last part of `name` as a name of the executable, unless a module has it already. */
void dp_image_call(struct dp_image *image, const char *name);
/* Adds the names by which the process was started. */
void dp_image_call_as_started(struct dp_image *image);

#endif
