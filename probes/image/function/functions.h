/* SPDX-License-Identifier: MIT */
/* Lists all functions of a module: from its symbols, and from its unwind tables if they have no symbol. */
#ifndef DP_PROBES_IMAGE_FUNCTION_FUNCTIONS_H
#define DP_PROBES_IMAGE_FUNCTION_FUNCTIONS_H

#include "probes/image/image.h"

struct dp_named {
	struct dp_function f;
	bool alias; /* another name of the function before it */
	bool ifunc; /* an IFUNC: its code selects the function that callers of the name reach */
};

/*
 * Lists the functions by ascending address. Of several names of one address the best comes first, the others follow as aliases.
 * Labels inside a function are left out. A size that no symbol has comes from the unwind tables, or is 0. The caller frees the
 * array; the module owns the names.
 */
struct dp_error *dp_module_functions(struct dp_module *m, struct dp_named **ret, size_t *n) DP_MUST_CHECK;
/*
 * True if module `m`, or a function's name, matches a glob [module '!'] symbol. NULL matches everything except the vdso. Module
 * names match as in dp_image_resolve().
 */
bool dp_module_glob(const struct dp_module *m, const char *glob);
bool dp_name_glob(const char *glob, const char *name);

#endif
