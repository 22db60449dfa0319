/* SPDX-License-Identifier: MIT */
/* Where the symbols of a stripped file may be found. */
#ifndef DP_PROBES_DEBUG_FILE_H
#define DP_PROBES_DEBUG_FILE_H

#include "probes/image/module.h"

/*
 * The separate debug file: by build-id, then by .gnu_debuglink (its build-id, or where one has none its checksum, must fit),
 * below the target's root and then in our own view. NULL if there is none that fits. `path` (or NULL) gets its name, to be freed
 * in any case.
 */
struct dp_elf *dp_debug_file_find(struct dp_module *m, char **path);
/* What .gnu_debuglink says, a file name without a directory and its checksum. */
bool dp_debug_file_link(const struct dp_elf *elf, const char **name, uint32_t *crc);
/* How much higher the addresses of `elf` are than those of its debug file: a prelinked file has moved away from it. */
uint64_t dp_debug_file_moved(const struct dp_elf *elf, const struct dp_elf *debug);
/* minidebug.c: the ELF file packed into .gnu_debugdata, or NULL. */
struct dp_elf *dp_minidebug_unpack(const struct dp_elf *elf, const char *name);
/* All symbols that the file itself lacks. */
void dp_debug_symbols_load(struct dp_module *m, struct dp_symbols *ret);

#endif
