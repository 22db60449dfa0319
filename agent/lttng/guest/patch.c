/* SPDX-License-Identifier: MIT */
/* Tables of a loaded object that bind its calls and list its destructors. Changes neither code nor other objects. */
#include "agent/lttng/guest/redirect.h"

#include <elf.h>
#include <link.h>
#include <sys/mman.h>

#define PAGE_MASK (~UINT64_C(4095))

void dp_object_of(const struct dl_phdr_info *info, struct dp_object *ret)
{
	*ret = (struct dp_object){.base = info->dlpi_addr, .tls_module = info->dlpi_tls_modid};
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		const uint64_t start = info->dlpi_addr + p->p_vaddr;
		if (p->p_type == PT_DYNAMIC)
			ret->dynamic = start;
		if (p->p_type == PT_GNU_RELRO) { /* rounded like in ld.so */
			ret->relro = start & PAGE_MASK;
			ret->relro_end = (start + p->p_memsz) & PAGE_MASK;
		}
	}
}

bool dp_object_contains(const struct dl_phdr_info *info, const void *address)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type == PT_LOAD && (uint64_t)(uintptr_t)address - info->dlpi_addr - p->p_vaddr < p->p_memsz)
			return true;
	}
	return false;
}

uint64_t dp_object_entry(const struct dp_object *o, int64_t tag)
{
	for (const ElfW(Dyn) *d = (const ElfW(Dyn) *)o->dynamic; d->d_tag != DT_NULL; d++)
		if (d->d_tag == tag)
			return d->d_un.d_val;
	return 0;
}

/* ld.so relocates these entries in place, unless the section is read-only. */
uint64_t dp_object_table(const struct dp_object *o, int64_t tag)
{
	const uint64_t value = dp_object_entry(o, tag);
	return value && value < o->base ? value + o->base : value;
}

const char *dp_object_soname(const struct dp_object *o)
{
	const uint64_t offset = dp_object_entry(o, DT_SONAME), names = dp_object_table(o, DT_STRTAB);
	return offset && names ? (const char *)(names + offset) : "";
}

static bool protect(const struct dp_object *o, int how)
{
	return o->relro >= o->relro_end || mprotect((void *)o->relro, o->relro_end - o->relro, how) == 0;
}

bool dp_object_unseal(const struct dp_object *o)
{
	return protect(o, PROT_READ | PROT_WRITE);
}

bool dp_object_seal(const struct dp_object *o)
{
	return protect(o, PROT_READ);
}

static void store(uint64_t where, const void *value)
{
	__atomic_store_n((const void **)where, value, __ATOMIC_RELEASE);
}

/* The symbol, if the entry binds a function by name; NULL: an entry of a variable or of another kind. */
static const ElfW(Sym) * import(const struct dp_object *o, const ElfW(Rela) * r)
{
	const uint32_t type = ELF64_R_TYPE(r->r_info);
	const ElfW(Sym) *symbol = (const ElfW(Sym) *)dp_object_table(o, DT_SYMTAB) + ELF64_R_SYM(r->r_info);
	const bool is_address = type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT || type == R_X86_64_64;
	return is_address && symbol->st_shndx == SHN_UNDEF ? symbol : NULL;
}

static void rebind(const struct dp_object *o, const ElfW(Rela) * r)
{
	const uint64_t where = o->base + r->r_offset, is = *(const uint64_t *)where;
	const uint64_t to = dp_libc_instead(o, (uint32_t)ELF64_R_SYM(r->r_info), is);
	if (to != is)
		store(where, (const void *)to);
}

static void rebind_table(const struct dp_object *o, uint64_t relocations, uint64_t size)
{
	const ElfW(Rela) *r = (const ElfW(Rela) *)relocations;
	for (; r && size >= sizeof(*r); r++, size -= sizeof(*r))
		if (import(o, r))
			rebind(o, r);
}

void dp_object_rebind(const struct dp_object *o)
{
	rebind_table(o, dp_object_table(o, DT_JMPREL), dp_object_entry(o, DT_PLTRELSZ));
	rebind_table(o, dp_object_table(o, DT_RELA), dp_object_entry(o, DT_RELASZ));
}

static void redirect_table(const struct dp_object *o, uint64_t relocations, uint64_t size, uint64_t *found)
{
	const char *names = (const char *)dp_object_table(o, DT_STRTAB);
	const ElfW(Rela) *r = (const ElfW(Rela) *)relocations;
	for (; r && size >= sizeof(*r); r++, size -= sizeof(*r)) {
		const ElfW(Sym) *symbol = import(o, r);
		unsigned number;
		if (!symbol)
			continue;
		const void *to = dp_lttng_redirection(names + symbol->st_name, &number);
		if (!to) {
			rebind(o, r);
			continue;
		}
		store(o->base + r->r_offset, to);
		*found |= UINT64_C(1) << number;
	}
}

void dp_object_redirect(const struct dp_object *o, uint64_t *found)
{
	redirect_table(o, dp_object_table(o, DT_JMPREL), dp_object_entry(o, DT_PLTRELSZ), found);
	redirect_table(o, dp_object_table(o, DT_RELA), dp_object_entry(o, DT_RELASZ), found);
}

static void nothing(void)
{
}

void dp_object_drop_destructors(const struct dp_object *o)
{
	const uint64_t array = dp_object_table(o, DT_FINI_ARRAY), size = dp_object_entry(o, DT_FINI_ARRAYSZ);
	for (uint64_t at = 0; array && at < size; at += sizeof(void *))
		store(array + at, (const void *)(uintptr_t)nothing);
}
