/* SPDX-License-Identifier: MIT */
/* A snapshot as a file (docs/snapshot-format.md), and as JSON (share/snapshot.schema.json). Both directions of the file; files
 * may be hostile. */
#ifndef DP_PMODULES_FILE_H
#define DP_PMODULES_FILE_H

#include "base/buf.h"
#include "pmodules/model/snapshot.h"

/* What is to be a file, and what a message calls it: "snapshot". */
struct dp_file_bytes {
	const void *bytes;
	size_t n;
	const char *what;
};

/* As dp_snapshot_write() and dp_snapshot_write_beside() do with a snapshot's. */
struct dp_error *dp_file_put(const struct dp_file_bytes *b, const char *path) DP_MUST_CHECK;
struct dp_error *dp_file_put_beside(const struct dp_file_bytes *b, const char *path) DP_MUST_CHECK;

/* Written beside and renamed: a file of that name is whole or not there. Mode 0600: it holds the program's memory. */
struct dp_error *dp_snapshot_write(struct dp_snapshot *s, const char *path) DP_MUST_CHECK;
/*
 * The same under a name that dynprobe has chosen, and others can foresee: a pipe that somebody has put there gives way, and gets
 * nothing of it.
 */
struct dp_error *dp_snapshot_write_beside(struct dp_snapshot *s, const char *path) DP_MUST_CHECK;
/* Could a snapshot be written there, or, NULL, into the current directory? Asked before a process is stopped for it. */
struct dp_error *dp_snapshot_check_place(const char *path) DP_MUST_CHECK;
/* DP_TAG_BAD_SNAPSHOT says what is wrong and at which byte. Unknown sections and fields of newer writers are passed over. */
struct dp_error *dp_snapshot_read_file(const char *path, struct dp_snapshot **ret) DP_MUST_CHECK;
/* From memory: the fuzzer's door. */
struct dp_error *dp_snapshot_read_bytes(const void *bytes, size_t n, struct dp_snapshot **ret) DP_MUST_CHECK;
/* The file's bytes, as dp_snapshot_write() puts them; `ret` is the caller's then (dp_buf_fini). */
struct dp_error *dp_snapshot_write_bytes(struct dp_snapshot *s, struct dp_buf *ret) DP_MUST_CHECK;

/* As JSON: output/snapshot/show.h. */

#endif
