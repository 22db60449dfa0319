/* SPDX-License-Identifier: MIT */
/* Checks that this is a core file that dynprobe can read. If not, says what it is. */
#include "pmodules/source/core_internal.h"

#include <string.h>

#define LOADS_MOST (1u << 20)

/* Formats that systemd-coredump and logrotate use. */
static const struct {
	char magic[7];
	size_t n;
	const char *name, *unpack;
} packers[] = {
        {"\x28\xb5\x2f\xfd", 4, "zstd", "zstd -d"},
        {"\x04\x22\x4d\x18", 4, "lz4", "lz4 -d"},
        {"\xfd\x37zXZ", 5, "xz", "xz -d"},
        {"\x1f\x8b", 2, "gzip", "gzip -d"},
};

static struct dp_error *no_elf(const struct dp_core *c, const unsigned char *first)
{
	for (size_t i = 0; i < sizeof(packers) / sizeof(*packers); i++)
		if (!memcmp(first, packers[i].magic, packers[i].n))
			return dp_core_bad(c, "it is compressed; unpack it first: %s <%s >core, or coredumpctl dump PID -o core",
			                   packers[i].unpack, c->path);
	return dp_core_bad(c, c->size ? "it is not an ELF file" : "it is empty");
}

static struct dp_error *other_machine(const struct dp_core *c, const Elf64_Ehdr *e)
{
	const char *what = e->e_machine == EM_AARCH64                            ? "a 64-bit ARM process"
	                   : e->e_machine == EM_ARM                              ? "a 32-bit ARM process"
	                   : e->e_machine == EM_386 || e->e_machine == EM_X86_64 ? "a 32-bit x86 process"
	                   : e->e_machine == EM_RISCV                            ? "a RISC-V process"
	                   : e->e_machine == EM_PPC64                            ? "a POWER process"
	                   : e->e_machine == EM_S390                             ? "an IBM Z process"
	                                                                         : NULL;
	if (what)
		return dp_core_bad(c, "it is of %s; dynprobe only reads cores of 64-bit x86 processes", what);
	return dp_core_bad(c, "it is of another machine (ELF machine %u); dynprobe only reads cores of 64-bit x86 processes",
	                   e->e_machine);
}

struct dp_error *dp_core_header(const struct dp_core *c, Elf64_Ehdr *e, size_t *n)
{
	*e = (Elf64_Ehdr){0};
	const bool whole = dp_core_get(c, 0, e, c->size < sizeof(*e) ? c->size : sizeof(*e)) && c->size >= sizeof(*e);
	if (memcmp(e->e_ident, ELFMAG, SELFMAG) != 0)
		return no_elf(c, e->e_ident);
	if (!whole)
		return dp_core_bad(c, "its ELF header is truncated");
	if (e->e_ident[EI_CLASS] != ELFCLASS64 || e->e_ident[EI_DATA] != ELFDATA2LSB || e->e_machine != EM_X86_64)
		return other_machine(c, e);
	if (e->e_type != ET_CORE)
		return dp_core_bad(c, "it is an ELF file of another type (%u)", e->e_type);
	*n = e->e_phnum;
	Elf64_Shdr first;
	if (e->e_phnum == PN_XNUM) { /* too many to fit: the number is in the first section header */
		if (!dp_core_get(c, e->e_shoff, &first, sizeof(first)))
			return dp_core_bad(c, "it is truncated before its section header");
		*n = first.sh_info;
	}
	if (e->e_phentsize != sizeof(Elf64_Phdr) || !*n || *n > LOADS_MOST || e->e_phoff > c->size ||
	    *n > (c->size - e->e_phoff) / sizeof(Elf64_Phdr))
		return dp_core_bad(c, "its program headers are truncated");
	return NULL;
}
