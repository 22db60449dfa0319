/* SPDX-License-Identifier: MIT */
/*
 * A cache of uncompressed debug files. Debug files are compressed, and libdw uncompresses a whole file when it opens it, which
 * takes longer than everything else. The cache keeps the result in a file named by build-id, and maps it the next time. It is
 * only an optimization: a cache file that is unreadable, damaged or made from another file is ignored; write errors are ignored.
 */
#ifndef DP_PROBES_DEBUG_DEBUG_CACHE_H
#define DP_PROBES_DEBUG_DEBUG_CACHE_H

#include "probes/elf/elf_file.h"

#include <limits.h>
#include <sys/stat.h>

struct dp_debug_key {
	char path[PATH_MAX]; /* of the cache file */
	uint64_t source[5];  /* identity of the compressed file: device, inode, size, ctime */
};

/* Sets the cache directory: created when needed, for this user only. `dir` is copied. NULL (the default) disables the cache. */
void dp_debug_cache_dir(const char *dir);
/* False if the file is not cached: it has no build-id, is not compressed, or is too small to be worth it. */
bool dp_debug_cache_key(int fd, struct dp_debug_key *ret);
/* NULL if there is no valid cache file. */
struct dp_elf *dp_debug_cache_load(const struct dp_debug_key *key);
/* Stores the compressed file's content. Call it after libdw has uncompressed `elf`. */
void dp_debug_cache_store(const struct dp_debug_key *key, Elf *elf);

#endif
