/* SPDX-License-Identifier: MIT */
/* The least .debug_info for code that is in no file: one compile unit for each mapping, without names. */
#ifndef DP_OUTPUT_ELF_ELF_UNIT_H
#define DP_OUTPUT_ELF_ELF_UNIT_H

#include "base/buf.h"

#include <stdint.h>

/*
 * gdb's unwinder of epilogues takes each frame whose pc is at a ret before it looks at .debug_frame, unless a unit of a gcc from 4.5
 * on covers the pc. Its frame would not be a signal frame (elf_frames.c), and wrong in a stub that displaces a ret.
 */
void dp_unit_put(struct dp_buf *info, uint64_t start, uint64_t size);
void dp_unit_put_abbrev(struct dp_buf *abbrev);

#endif
