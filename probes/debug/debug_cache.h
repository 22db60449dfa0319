/* SPDX-License-Identifier: MIT */
/*
 * Debug files are packed, and libdw unpacks all of one when it opens it, which takes longer than all else that is done with it.
 * So what was unpacked is kept, in files named by build-id, and mapped the next time. A cache is a help, never a condition: what
 * cannot be read, is damaged, or was made of another file is unpacked again; what cannot be written is not kept.
 */
#ifndef DP_PROBES_DEBUG_CACHE_H
#define DP_PROBES_DEBUG_CACHE_H

#include "probes/elf/elf_file.h"

#include <limits.h>
#include <sys/stat.h>

struct dp_debug_key {
	char path[PATH_MAX]; /* of the file that keeps it */
	uint64_t source[5];  /* the packed file: where it is, how large, when it was changed */
};

/* Where files are kept from now on: created when missing, for this user only; copied. NULL (as at first): nowhere. */
void dp_debug_cache_dir(const char *dir);
/* False: nothing of this file is kept. It has no build-id, is not packed, or so little that it is not worth it. */
bool dp_debug_cache_key(int fd, struct dp_debug_key *ret);
/* NULL if there is none to be believed. */
struct dp_elf *dp_debug_cache_load(const struct dp_debug_key *key);
/* Of the packed file, once libdw has unpacked it. */
void dp_debug_cache_store(const struct dp_debug_key *key, Elf *elf);

#endif
