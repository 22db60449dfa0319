/* SPDX-License-Identifier: MIT */
/*
 * A snapshot as a file, read and written (docs/snapshot-format.md), and as JSON (share/snapshot.schema.json). Input files may be
 * hostile.
 */
#ifndef DP_PMODULES_FILE_FILE_H
#define DP_PMODULES_FILE_FILE_H

#include "base/buf.h"
#include "pmodules/model/snapshot.h"

/* The content of a file, and its name in messages: "snapshot". */
struct dp_file_bytes {
	const void *bytes;
	size_t n;
	const char *what;
};

/* Like dp_snapshot_write() and dp_snapshot_write_beside(). */
struct dp_error *dp_file_put(const struct dp_file_bytes *b, const char *path) DP_MUST_CHECK;
struct dp_error *dp_file_put_beside(const struct dp_file_bytes *b, const char *path) DP_MUST_CHECK;

/* Writes a temporary file and renames it, so `path` is complete or absent. Mode 0600: it contains the program's memory. */
struct dp_error *dp_snapshot_write(struct dp_snapshot *s, const char *path) DP_MUST_CHECK;
/* The same for a name that dynprobe chose and others can predict: a pipe that exists there is replaced and receives no data. */
struct dp_error *dp_snapshot_write_beside(struct dp_snapshot *s, const char *path) DP_MUST_CHECK;
/* Could a snapshot be written there (NULL: into the current directory)? Checked before the process is stopped. */
struct dp_error *dp_snapshot_check_place(const char *path) DP_MUST_CHECK;
/* DP_TAG_BAD_SNAPSHOT says what is wrong, and at which byte. Skips sections and fields that a newer writer added. */
struct dp_error *dp_snapshot_read_file(const char *path, struct dp_snapshot **ret) DP_MUST_CHECK;
/* From memory, for the fuzzer. */
struct dp_error *dp_snapshot_read_bytes(const void *bytes, size_t n, struct dp_snapshot **ret) DP_MUST_CHECK;
/* The bytes of the file. The caller frees `ret` with dp_buf_fini(). */
struct dp_error *dp_snapshot_write_bytes(struct dp_snapshot *s, struct dp_buf *ret) DP_MUST_CHECK;

/* JSON: output/snapshot/show.h. */

#endif
