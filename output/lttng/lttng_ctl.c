/* SPDX-License-Identifier: MIT */
#include "output/lttng/lttng_ctl.h"

#include <dlfcn.h>

#define LIBRARY "liblttng-ctl.so.0" /* the interface of <lttng/lttng.h> */

struct dp_lttng_ctl dp_lttng_ctl;

static struct dp_error *missing(void)
{
	const char *why = dlerror();
	return dp_error(DP_TAG_LTTNG, "cannot load " LIBRARY ": %s; install lttng-tools (Debian: liblttng-ctl0)",
	                why ? why : "unknown error");
}

/* dlsym() returns an object pointer; POSIX says that it converts. */
static bool find(void *library, const char *name, void *function)
{
	void *found = dlsym(library, name);
	*(void **)function = found;
	return found;
}

struct dp_error *dp_lttng_ctl_load(void)
{
	static bool loaded;
	if (loaded)
		return NULL;
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return missing();
#define X(name)                                                                                                                  \
	if (!find(library, "lttng_" #name, &dp_lttng_ctl.name))                                                                  \
		return missing();
	DP_LTTNG_CTL_FUNCTIONS(X)
#undef X
	loaded = true;
	return NULL;
}
