/* SPDX-License-Identifier: MIT */
/* Entries of a .debug_frame section (DWARF 5, 6.4.1). Private to elf_object.c. */
#ifndef DP_OUTPUT_ELF_ELF_FRAMES_H
#define DP_OUTPUT_ELF_ELF_FRAMES_H

#include "base/buf.h"
#include "trampoline/code/frames.h"

void dp_frames_put(struct dp_buf *out, const struct dp_frame_rows *rows);
/* Copies `n` bytes of another section and adds `at` to its code addresses. */
void dp_frames_copy(struct dp_buf *out, const uint8_t *section, size_t n, uint64_t at);

#endif
