/* SPDX-License-Identifier: MIT */
/* The relocations that ld.so applies. */
#ifndef DP_PROBES_ELF_RELOCATIONS_H
#define DP_PROBES_ELF_RELOCATIONS_H

#include "probes/elf/elf_file.h"

/* The value of the pointer at `vaddr` after relocation, as a file address; without a relocation, what the file has there. */
bool dp_elf_pointer(const struct dp_elf *elf, uint64_t vaddr, uint64_t *ret);
/* True if ld.so may write to the text. */
bool dp_elf_text_relocations(const struct dp_elf *elf);
/* Applies the relocations to the bytes [vaddr, vaddr+n). The file is loaded `bias` above its own addresses. */
void dp_elf_relocate(const struct dp_elf *elf, int64_t bias, uint64_t vaddr, uint8_t *bytes, size_t n);

#endif
