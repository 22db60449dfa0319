/* SPDX-License-Identifier: MIT */
/* Parts of paths. */
#ifndef DP_BASE_PATH_H
#define DP_BASE_PATH_H

#include <stdbool.h>

/* The part behind the last slash; the path itself if there is none. */
const char *dp_path_last(const char *path);
/* Is `path` what a user typed, or does it end with a slash and that? False if nothing was typed. */
bool dp_path_ends(const char *path, const char *typed);

#endif
