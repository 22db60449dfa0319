/* SPDX-License-Identifier: MIT */
/* pmodule new: the skeleton of a module. */
#ifndef DP_CLI_COMMANDS_PMODULE_NEW_H
#define DP_CLI_COMMANDS_PMODULE_NEW_H

#include "base/error.h"

/* `language`: "lua" or "c". Writes `path` (NULL: NAME.lua or NAME.c), which must not exist, and prints its name. */
struct dp_error *dp_pmodule_new(const char *name, const char *language, const char *path) DP_MUST_CHECK;

#endif
