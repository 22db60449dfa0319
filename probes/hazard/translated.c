/* SPDX-License-Identifier: MIT */
/*
 * Programs that run others by translation: they read the code in memory, and execute what they made of it. A jump that is written
 * there after that is never executed. Only such programs are known whose process has a file that says so.
 */
#include "probes/hazard/hazard.h"
#include "probes/image/image_internal.h"

#include <fnmatch.h>
#include <stddef.h>

static bool translates(const struct dp_module *m)
{
	static const char *const path[] = {
	        "*/valgrind/*-amd64-linux",       /* the tools: memcheck, ... */
	        "*/libdynamorio.so*", "*/pinbin", /* Intel Pin */
	};
	for (size_t i = 0; i < sizeof(path) / sizeof(*path); i++)
		if (!fnmatch(path[i], m->path, 0))
			return true;
	return false;
}

const struct dp_module *dp_image_translator(struct dp_image *image)
{
	for (size_t i = 0; i < image->nmodules && !image->translator_known; i++)
		if (translates(image->module[i]))
			image->translator = image->module[i];
	image->translator_known = true;
	return image->translator;
}
