/* SPDX-License-Identifier: MIT */
/*
 * One ELF file in memory. libelf reads the headers; every range that they name is checked against the file's size. Addresses are
 * the file's own (p_vaddr).
 */
#ifndef DP_PROBES_ELF_ELF_FILE_H
#define DP_PROBES_ELF_ELF_FILE_H

#include "base/error.h"

#include <elf.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <stdint.h>

struct dp_elf {
	const uint8_t *bytes;
	size_t size;
	bool mapped; /* release with munmap, not free */
	Elf *elf;
	Dwarf_CFI *cfi; /* dp_elf_cfi() */
	bool cfi_asked; /* NULL then means that there is none */
	Elf64_Ehdr ehdr;
	Elf64_Phdr *phdr;
	size_t nphdr;
};

struct dp_span { /* bytes of the file and their address */
	const uint8_t *bytes;
	size_t size;
	uint64_t vaddr;
};

/* Maps the file. The caller keeps the descriptor. `name` is for messages. */
struct dp_error *dp_elf_open(int fd, const char *name, struct dp_elf **ret) DP_MUST_CHECK;
/* Takes ownership of `bytes` (malloc'ed), also on failure. */
struct dp_error *dp_elf_from_memory(uint8_t *bytes, size_t size, const char *name, struct dp_elf **ret) DP_MUST_CHECK;
struct dp_elf *dp_elf_destroy(struct dp_elf *elf);
/* minidebug.c: the ELF file packed into .gnu_debugdata, or NULL. */
struct dp_elf *dp_minidebug_unpack(const struct dp_elf *elf, const char *name);
/* True if the file starts with the ELF magic. */
bool dp_elf_magic(int fd);

/* A section with bytes in the file, by name, or by type if `name` is NULL. */
bool dp_elf_section(const struct dp_elf *elf, const char *name, uint32_t type, GElf_Shdr *shdr, struct dp_span *ret);
/* The bytes of section number `index`. */
bool dp_elf_section_at(const struct dp_elf *elf, uint32_t index, GElf_Shdr *shdr, struct dp_span *ret);
/* The file's bytes of program header `i`, cut to the file's size. False if it is not a PT_LOAD or is empty. */
bool dp_elf_load(const struct dp_elf *elf, size_t i, struct dp_span *ret);
/* The bytes from `vaddr` to the end of its segment. */
bool dp_elf_at(const struct dp_elf *elf, uint64_t vaddr, struct dp_span *ret);
bool dp_elf_executable(const struct dp_elf *elf, uint64_t vaddr);
const Elf64_Phdr *dp_elf_phdr(const struct dp_elf *elf, uint32_t type);
/* The value of an entry of the dynamic section. */
bool dp_elf_dynamic(const struct dp_elf *elf, int64_t tag, uint64_t *ret);
/* The same for the entry with that tag after `n` others. */
bool dp_elf_dynamic_nth(const struct dp_elf *elf, int64_t tag, size_t n, uint64_t *ret);
/* Lowest and highest address of the PT_LOAD segments, in whole pages. False if there are none or they are invalid. */
bool dp_elf_extent(const struct dp_elf *elf, uint64_t *start, uint64_t *end);
/* The content of the build-id note. */
bool dp_elf_build_id(const struct dp_elf *elf, const uint8_t **bytes, size_t *n);

/* The table in .eh_frame, opened on the first call; NULL if there is none. */
Dwarf_CFI *dp_elf_cfi(struct dp_elf *elf);

#endif
