/* SPDX-License-Identifier: MIT */
/*
 * The files of a watch (exec_watch.h). The mark is on the file, not on its name; an upgrade puts another file under the name.
 * So the directories of the names are watched as well (inotify, which delays nobody), and the new file is marked.
 */
#ifndef DP_INJECTOR_TRACEE_EXEC_EXEC_FILES_H
#define DP_INJECTOR_TRACEE_EXEC_EXEC_FILES_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

struct dp_exec_files; /* opaque */
/*
 * Marks the files in the fanotify group, which outlives this. The paths must, too. An exec of one asks; with `modules` any open,
 * and a path that leads to no file is left out. DP_TAG_EXEC: not a file.
 */
struct dp_error *dp_exec_files_create(int group, const char *const *path, size_t n, bool modules,
                                      struct dp_exec_files **ret) DP_MUST_CHECK;
/* One more, without its directory. */
void dp_exec_files_add(const struct dp_exec_files *f, const char *path);
/* Marks all file systems that are mounted here now. */
struct dp_error *dp_exec_files_mark_all(const struct dp_exec_files *f) DP_MUST_CHECK;
/* Accepts NULL. */
struct dp_exec_files *dp_exec_files_destroy(struct dp_exec_files *f);
/* Readable when a directory has changed. */
int dp_exec_files_fd(const struct dp_exec_files *f);
/* Marks the files that the paths lead to now. Earlier files keep their marks: processes may still execute them by other names. */
void dp_exec_files_renew(struct dp_exec_files *f);

#endif
