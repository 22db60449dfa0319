/* SPDX-License-Identifier: MIT */
/* All functions of a module: what its symbols name, and what only its unwind tables know of. */
#ifndef DP_PROBES_FUNCTIONS_H
#define DP_PROBES_FUNCTIONS_H

#include "probes/probes.h"

struct dp_named {
	struct dp_function f;
	bool alias; /* a further name of the one before it */
	bool ifunc; /* what is there only chooses the function that calls of that name reach */
};

/*
 * Ascending addresses; of several names of one address the best comes first, the others follow as aliases. Labels inside of a
 * function are none. Sizes that no symbol tells come from the unwind tables, or are 0. Malloc'ed; names are the module's.
 */
struct dp_error *dp_module_functions(struct dp_module *m, struct dp_named **ret, size_t *n) DP_MUST_CHECK;
/*
 * Is `m`, is a function's name what a glob of the form [module '!'] symbol means? NULL: everything but the vdso. Module names are
 * understood as by dp_image_resolve().
 */
bool dp_module_glob(const struct dp_module *m, const char *glob);
bool dp_name_glob(const char *glob, const char *name);

/*
 * The image of an executable or a library that is not running, as if it were loaded alone: at its own address if it has one, else
 * at one that is typical. DP_TAG_BAD_ELF if it cannot be.
 */
struct dp_error *dp_image_from_file(const char *path, struct dp_image **ret) DP_MUST_CHECK;
#define DP_FILE_BASE_PROGRAM 0x555555554000ULL /* where kernels put a PIE without ASLR */
#define DP_FILE_BASE_LIBRARY 0x7f5555554000ULL

#endif
