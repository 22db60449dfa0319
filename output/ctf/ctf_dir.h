/* SPDX-License-Identifier: MIT */
/* Trace directories and their parents, with files that only their owner can read. */
#ifndef DP_OUTPUT_CTF_DIR_H
#define DP_OUTPUT_CTF_DIR_H

#include "base/error.h"

#include <stddef.h>

/* Creates `dir` and its missing parents, mode 0700. An existing directory is fine. */
struct dp_error *dp_dir_create(const char *dir) DP_MUST_CHECK;
void dp_dir_unlink(const char *dir, const char *name);
/* Removes dir/name, and then the directory if it is empty. */
void dp_dir_undo(const char *dir, const char *name);
/* DP_TAG_OUTPUT if the directory has a stream or the metadata of a trace. */
struct dp_error *dp_dir_without_trace(const char *dir) DP_MUST_CHECK;
/* Removes the metadata and the streams of a trace. */
void dp_dir_remove_trace(const char *dir);

#define DP_PIECE_NAME "%04u"  /* the traces of a recording with --rotate */
#define DP_PIECE_NEXT ".next" /* one that has not begun */
/* DP_TAG_OUTPUT if the directory has a trace, or pieces of one. */
struct dp_error *dp_dir_without_pieces(const char *dir) DP_MUST_CHECK;
/*
 * Removes a trace with what dynprobe keeps in its sub-folder, and the directory, unless it has files of others. The metadata goes
 * first: readers do not take the rest for a trace.
 */
void dp_dir_remove_piece(const char *dir);
/* The pieces of a recording that failed. */
void dp_dir_remove_pieces(const char *dir);

/* The user's home as LTTng chooses it: $LTTNG_HOME, $HOME, or from the password file; NULL if there is none. */
const char *dp_home(void);
/* `name` as a file or session name: at most 64 bytes; all but letters, digits, '.', '-', '_' become '_'. NULL: no memory. */
char *dp_file_name(const char *name);

#endif
