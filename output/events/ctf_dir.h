/* SPDX-License-Identifier: MIT */
/* Where traces lie: directories with their parents, and files that nobody else can read. */
#ifndef DP_OUTPUT_CTF_DIR_H
#define DP_OUTPUT_CTF_DIR_H

#include "base/error.h"

#include <stddef.h>

/* Creates `dir` and what is missing above it, mode 0700. A directory that exists already is fine. */
struct dp_error *dp_dir_create(const char *dir) DP_MUST_CHECK;
/* Creates dir/name, mode 0600, which must not exist; the descriptor in `ret`. */
struct dp_error *dp_dir_new_file(const char *dir, const char *name, int *ret) DP_MUST_CHECK;
/* Removes dir/name and the directory itself if it is empty then. */
void dp_dir_undo(const char *dir, const char *name);

/* The user's home as LTTng takes it: $LTTNG_HOME, $HOME, the password file's; NULL if there is none. */
const char *dp_home(void);
/* `name` fit for a file or session name: at most 64 bytes, what is no letter, digit, '.', '-' or '_' becomes '_'. NULL: no memory. */
char *dp_file_name(const char *name);

#endif
