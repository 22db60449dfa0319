/* SPDX-License-Identifier: MIT */
#include "probes/elf/elf_file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096ULL

/* No user-space file has addresses above this. The sum of two such numbers does not overflow. */
#define USER_END (1ULL << 47)

struct dp_elf *dp_elf_destroy(struct dp_elf *elf)
{
	if (!elf)
		return NULL;
	if (elf->cfi)
		dwarf_cfi_end(elf->cfi);
	if (elf->elf)
		elf_end(elf->elf);
	if (elf->mapped)
		munmap((void *)(uintptr_t)elf->bytes, elf->size);
	else
		free((void *)(uintptr_t)elf->bytes);
	free(elf->phdr);
	free(elf);
	return NULL;
}

static const char *parse(struct dp_elf *e)
{
	if (e->size < sizeof(e->ehdr) || memcmp(e->bytes, ELFMAG, SELFMAG) != 0)
		return "it is not an ELF file";
	memcpy(&e->ehdr, e->bytes, sizeof(e->ehdr));
	if (e->ehdr.e_ident[EI_CLASS] != ELFCLASS64 || e->ehdr.e_ident[EI_DATA] != ELFDATA2LSB || e->ehdr.e_machine != EM_X86_64)
		return "it is not for x86-64";
	elf_version(EV_CURRENT);
	e->elf = elf_memory((char *)(uintptr_t)e->bytes, e->size);
	if (!e->elf || elf_kind(e->elf) != ELF_K_ELF)
		return "its header is damaged";
	if (e->ehdr.e_phnum && (e->ehdr.e_phentsize != sizeof(Elf64_Phdr) || e->ehdr.e_phoff > e->size ||
	                        e->ehdr.e_phnum > (e->size - e->ehdr.e_phoff) / sizeof(Elf64_Phdr)))
		return "its program headers are outside of the file";
	e->phdr = calloc(e->ehdr.e_phnum + 1U, sizeof(*e->phdr));
	if (!e->phdr)
		return "out of memory";
	for (; e->nphdr < e->ehdr.e_phnum; e->nphdr++)
		memcpy(&e->phdr[e->nphdr], e->bytes + e->ehdr.e_phoff + e->nphdr * sizeof(Elf64_Phdr), sizeof(Elf64_Phdr));
	return NULL;
}

static struct dp_error *finish(struct dp_elf *e, const char *name, struct dp_elf **ret)
{
	const char *wrong = parse(e);
	if (wrong) {
		dp_elf_destroy(e);
		return dp_error(DP_TAG_BAD_ELF, "'%s' cannot be used: %s", name, wrong);
	}
	*ret = e;
	return NULL;
}

struct dp_error *dp_elf_open(int fd, const char *name, struct dp_elf **ret)
{
	struct stat st;
	if (fstat(fd, &st) != 0)
		return dp_error_sys(DP_TAG_SYS, "cannot examine '%s'", name);
	if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(Elf64_Ehdr))
		return dp_error(DP_TAG_BAD_ELF, "'%s' cannot be used: it is not an ELF file", name);
	/* Private and writable although nothing writes: into read-only private mappings of the file the kernel inserts
	 * uprobes. */
	void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
	if (bytes == MAP_FAILED)
		return dp_error_sys(DP_TAG_SYS, "cannot map '%s'", name);
	struct dp_elf *e = calloc(1, sizeof(*e));
	if (!e) {
		munmap(bytes, (size_t)st.st_size);
		return dp_error_nomem();
	}
	*e = (struct dp_elf){.bytes = bytes, .size = (size_t)st.st_size, .mapped = true};
	return finish(e, name, ret);
}

struct dp_error *dp_elf_from_memory(uint8_t *bytes, size_t size, const char *name, struct dp_elf **ret)
{
	struct dp_elf *e = calloc(1, sizeof(*e));
	if (!e) {
		free(bytes);
		return dp_error_nomem();
	}
	*e = (struct dp_elf){.bytes = bytes, .size = size};
	return finish(e, name, ret);
}

Dwarf_CFI *dp_elf_cfi(struct dp_elf *e)
{
	if (!e->cfi_asked)
		e->cfi = dwarf_getcfi_elf(e->elf);
	e->cfi_asked = true;
	return e->cfi;
}

bool dp_elf_magic(int fd)
{
	char magic[SELFMAG];
	return pread(fd, magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) && !memcmp(magic, ELFMAG, SELFMAG);
}

static bool section_bytes(const struct dp_elf *e, const GElf_Shdr *shdr, struct dp_span *ret)
{
	if (shdr->sh_type == SHT_NOBITS || (shdr->sh_flags & SHF_COMPRESSED) || shdr->sh_offset > e->size ||
	    shdr->sh_size > e->size - shdr->sh_offset)
		return false;
	*ret = (struct dp_span){e->bytes + shdr->sh_offset, shdr->sh_size, shdr->sh_addr};
	return true;
}

bool dp_elf_section(const struct dp_elf *e, const char *name, uint32_t type, GElf_Shdr *shdr, struct dp_span *ret)
{
	size_t strings;
	if (elf_getshdrstrndx(e->elf, &strings) != 0)
		return false;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(e->elf, scn));) {
		if (!gelf_getshdr(scn, shdr))
			continue;
		const char *found = name ? elf_strptr(e->elf, strings, shdr->sh_name) : NULL;
		if (name ? found && !strcmp(found, name) : shdr->sh_type == type)
			return section_bytes(e, shdr, ret);
	}
	return false;
}

bool dp_elf_section_at(const struct dp_elf *e, uint32_t index, GElf_Shdr *shdr, struct dp_span *ret)
{
	Elf_Scn *scn = elf_getscn(e->elf, index);
	return scn && gelf_getshdr(scn, shdr) && section_bytes(e, shdr, ret);
}

bool dp_elf_load(const struct dp_elf *e, size_t i, struct dp_span *ret)
{
	const Elf64_Phdr *p = &e->phdr[i];
	if (p->p_type != PT_LOAD || !p->p_filesz || p->p_offset >= e->size || p->p_vaddr >= USER_END)
		return false;
	uint64_t n = e->size - p->p_offset;
	*ret = (struct dp_span){e->bytes + p->p_offset, n < p->p_filesz ? n : p->p_filesz, p->p_vaddr};
	return true;
}

bool dp_elf_at(const struct dp_elf *e, uint64_t vaddr, struct dp_span *ret)
{
	struct dp_span s;
	for (size_t i = 0; i < e->nphdr; i++) {
		if (!dp_elf_load(e, i, &s) || vaddr < s.vaddr || vaddr - s.vaddr >= s.size)
			continue;
		*ret = (struct dp_span){s.bytes + (vaddr - s.vaddr), s.size - (vaddr - s.vaddr), vaddr};
		return true;
	}
	return false;
}

bool dp_elf_executable(const struct dp_elf *e, uint64_t vaddr)
{
	for (size_t i = 0; i < e->nphdr; i++) {
		const Elf64_Phdr *p = &e->phdr[i];
		if (p->p_type == PT_LOAD && (p->p_flags & PF_X) && vaddr >= p->p_vaddr && vaddr - p->p_vaddr < p->p_filesz)
			return true;
	}
	return false;
}

const Elf64_Phdr *dp_elf_phdr(const struct dp_elf *e, uint32_t type)
{
	for (size_t i = 0; i < e->nphdr; i++)
		if (e->phdr[i].p_type == type)
			return &e->phdr[i];
	return NULL;
}

bool dp_elf_dynamic(const struct dp_elf *e, int64_t tag, uint64_t *ret)
{
	return dp_elf_dynamic_nth(e, tag, 0, ret);
}

bool dp_elf_dynamic_nth(const struct dp_elf *e, int64_t tag, size_t nth, uint64_t *ret)
{
	const Elf64_Phdr *p = dp_elf_phdr(e, PT_DYNAMIC);
	if (!p || p->p_offset > e->size)
		return false;
	uint64_t n = e->size - p->p_offset;
	if (p->p_filesz < n)
		n = p->p_filesz;
	for (uint64_t at = 0; n - at >= sizeof(Elf64_Dyn); at += sizeof(Elf64_Dyn)) {
		Elf64_Dyn d;
		memcpy(&d, e->bytes + p->p_offset + at, sizeof(d));
		if (d.d_tag == DT_NULL)
			return false;
		if (d.d_tag == tag && !nth--) {
			*ret = d.d_un.d_val;
			return true;
		}
	}
	return false;
}

bool dp_elf_extent(const struct dp_elf *e, uint64_t *start, uint64_t *end)
{
	uint64_t lo = UINT64_MAX, hi = 0;
	for (size_t i = 0; i < e->nphdr; i++) {
		const Elf64_Phdr *p = &e->phdr[i];
		if (p->p_type != PT_LOAD)
			continue;
		if (p->p_vaddr >= USER_END || p->p_memsz >= USER_END)
			return false;
		if (p->p_vaddr < lo)
			lo = p->p_vaddr;
		if (p->p_vaddr + p->p_memsz > hi)
			hi = p->p_vaddr + p->p_memsz;
	}
	*start = lo & ~(PAGE - 1);
	*end = (hi + PAGE - 1) & ~(PAGE - 1);
	return lo < hi;
}

/* Walks the notes in one range. Both sizes are rounded up to 4. */
static bool find_note(const uint8_t *p, size_t n, const uint8_t **bytes, size_t *len)
{
	Elf64_Nhdr h;
	while (n >= sizeof(h)) {
		memcpy(&h, p, sizeof(h));
		uint64_t name = (h.n_namesz + 3ULL) & ~3ULL, desc = (h.n_descsz + 3ULL) & ~3ULL;
		if (name > n - sizeof(h) || h.n_descsz > n - sizeof(h) - name)
			return false;
		const uint8_t *body = p + sizeof(h) + name;
		if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == 4 && !memcmp(p + sizeof(h), "GNU", 4) && h.n_descsz) {
			*bytes = body;
			*len = h.n_descsz;
			return true;
		}
		uint64_t step = sizeof(h) + name + desc;
		if (step > n)
			return false;
		p += step;
		n -= step;
	}
	return false;
}

bool dp_elf_build_id(const struct dp_elf *e, const uint8_t **bytes, size_t *n)
{
	for (size_t i = 0; i < e->nphdr; i++) {
		const Elf64_Phdr *p = &e->phdr[i];
		if (p->p_type == PT_NOTE && p->p_offset <= e->size && p->p_filesz <= e->size - p->p_offset &&
		    find_note(e->bytes + p->p_offset, p->p_filesz, bytes, n))
			return true;
	}
	GElf_Shdr shdr;
	struct dp_span s;
	return dp_elf_section(e, ".note.gnu.build-id", 0, &shdr, &s) && find_note(s.bytes, s.size, bytes, n);
}
