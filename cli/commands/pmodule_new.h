/* SPDX-License-Identifier: MIT */
/* pmodule new: the skeleton of a module. */
#ifndef DP_CLI_PMODULE_NEW_H
#define DP_CLI_PMODULE_NEW_H

#include "base/error.h"

/* `language` is "lua" or "c"; into `path`, or NAME.lua or NAME.c where that is NULL. A file that is there is left alone. Prints
 * its path. */
struct dp_error *dp_pmodule_new(const char *name, const char *language, const char *path) DP_MUST_CHECK;

#endif
