/* SPDX-License-Identifier: MIT */
/* Finds the symbols of a stripped file. */
#ifndef DP_PROBES_IMAGE_DEBUG_FILE_H
#define DP_PROBES_IMAGE_DEBUG_FILE_H

#include "probes/image/module.h"

/*
 * The separate debug file: by build-id, then by .gnu_debuglink (its build-id must match, or its checksum if one has no build-id),
 * below the target's root and then in our own file system. NULL if there is none. `path` (or NULL) receives its name; the caller
 * frees it in any case.
 */
struct dp_elf *dp_debug_file_find(struct dp_module *m, char **path);
/* Reads .gnu_debuglink: a file name without a directory, and a checksum. */
bool dp_debug_file_link(const struct dp_elf *elf, const char **name, uint32_t *crc);
/* Difference between the addresses of `elf` and those of its debug file: prelink moves a file after its debug file was made. */
uint64_t dp_debug_file_moved(const struct dp_elf *elf, const struct dp_elf *debug);
/* Loads all symbols that the file itself lacks. */
void dp_debug_symbols_load(struct dp_module *m, struct dp_symbols *ret);

#endif
