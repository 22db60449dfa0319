/* SPDX-License-Identifier: MIT */
/*
 * Applies ld.so's relocations. Text relocations are rare (old assembly linked with -z notext), but with them memory legitimately
 * differs from the file.
 */
#include "probes/elf/relocations.h"

#include <string.h>

/* The table of dynamic relocations, found through the dynamic section, so it works without section headers. */
static bool rela_table(const struct dp_elf *elf, struct dp_span *ret)
{
	uint64_t at, size;
	if (!dp_elf_dynamic(elf, DT_RELA, &at) || !dp_elf_dynamic(elf, DT_RELASZ, &size) || !dp_elf_at(elf, at, ret))
		return false;
	if (size < ret->size)
		ret->size = size;
	return true;
}

static Elf64_Rela rela_at(const struct dp_span *table, size_t i)
{
	Elf64_Rela r;
	memcpy(&r, table->bytes + i * sizeof(r), sizeof(r));
	return r;
}

/* The file address that the relocation writes; false if another module defines it. */
static bool target(const struct dp_elf *elf, const Elf64_Rela *r, uint64_t *ret)
{
	uint64_t symbols, type = ELF64_R_TYPE(r->r_info);
	struct dp_span s;
	Elf64_Sym sym;
	if (type == R_X86_64_RELATIVE) {
		*ret = (uint64_t)r->r_addend;
		return true;
	}
	if (type != R_X86_64_64 && type != R_X86_64_GLOB_DAT)
		return false;
	if (!dp_elf_dynamic(elf, DT_SYMTAB, &symbols) || !dp_elf_at(elf, symbols + ELF64_R_SYM(r->r_info) * sizeof(sym), &s) ||
	    s.size < sizeof(sym))
		return false;
	memcpy(&sym, s.bytes, sizeof(sym));
	if (sym.st_shndx == SHN_UNDEF)
		return false;
	*ret = sym.st_value + (type == R_X86_64_64 ? (uint64_t)r->r_addend : 0);
	return true;
}

bool dp_elf_pointer(const struct dp_elf *elf, uint64_t vaddr, uint64_t *ret)
{
	struct dp_span table, s;
	if (rela_table(elf, &table))
		for (size_t i = 0; i < table.size / sizeof(Elf64_Rela); i++) {
			Elf64_Rela r = rela_at(&table, i);
			if (r.r_offset == vaddr)
				return target(elf, &r, ret);
		}
	if (!dp_elf_at(elf, vaddr, &s) || s.size < sizeof(*ret))
		return false;
	memcpy(ret, s.bytes, sizeof(*ret));
	return *ret != 0;
}

bool dp_elf_text_relocations(const struct dp_elf *elf)
{
	uint64_t value;
	if (dp_elf_dynamic(elf, DT_TEXTREL, &value) || (dp_elf_dynamic(elf, DT_FLAGS, &value) && (value & DF_TEXTREL)))
		return true;
	for (size_t i = 0; i < elf->nphdr; i++)
		if (elf->phdr[i].p_type == PT_LOAD && (elf->phdr[i].p_flags & PF_X) && (elf->phdr[i].p_flags & PF_W))
			return true;
	return false;
}

static void apply(uint64_t at, uint64_t value, uint64_t vaddr, uint8_t *bytes, size_t n)
{
	for (unsigned i = 0; i < sizeof(value); i++)
		if (at + i - vaddr < n)
			bytes[at + i - vaddr] = (uint8_t)(value >> 8 * i);
}

void dp_elf_relocate(const struct dp_elf *elf, int64_t bias, uint64_t vaddr, uint8_t *bytes, size_t n)
{
	struct dp_span table;
	if (!rela_table(elf, &table))
		return;
	for (size_t i = 0; i < table.size / sizeof(Elf64_Rela); i++) {
		Elf64_Rela r = rela_at(&table, i);
		uint64_t value;
		/* The unsigned arithmetic wraps on purpose: a relocation up to 7 bytes before the range reaches into it. */
		if (r.r_offset + 7 - vaddr < n + 14 && target(elf, &r, &value))
			apply(r.r_offset, value + (uint64_t)bias, vaddr, bytes, n);
	}
}
