/* SPDX-License-Identifier: MIT */
#include "output/elf/elf_object.h"

#include "output/elf/elf_frames.h"
#include "output/elf/elf_unit.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sections beside the code's: the empty one, .debug_frame, .debug_info, .debug_abbrev, .dynprobe.sites, .symtab, .strtab, .shstrtab. */
#define OTHERS 8u

struct dp_elf_object {
	struct dp_range *code;
	size_t ncode;
	struct dp_buf symbols, names, frames, sites, units, abbrev;
	bool failed;
};

struct dp_error *dp_object_create(struct dp_elf_object **ret)
{
	struct dp_elf_object *o = calloc(1, sizeof(*o));
	if (!o)
		return dp_error_nomem();
	dp_buf_grow(&o->symbols, sizeof(Elf64_Sym));
	dp_buf_grow(&o->names, 1);
	dp_unit_put_abbrev(&o->abbrev);
	*ret = o;
	return NULL;
}

struct dp_elf_object *dp_object_destroy(struct dp_elf_object *o)
{
	if (!o)
		return NULL;
	dp_buf_fini(&o->symbols);
	dp_buf_fini(&o->names);
	dp_buf_fini(&o->frames);
	dp_buf_fini(&o->sites);
	dp_buf_fini(&o->units);
	dp_buf_fini(&o->abbrev);
	free(o->code);
	free(o);
	return NULL;
}

/* ---- contents -------------------------------------------------------------------------------------------------------------- */

void dp_object_code(struct dp_elf_object *o, uint64_t start, uint64_t size)
{
	struct dp_range *grown = realloc(o->code, (o->ncode + 1) * sizeof(*grown));
	o->failed |= !grown;
	if (!grown)
		return;
	o->code = grown;
	o->code[o->ncode++] = (struct dp_range){start, size};
	dp_unit_put(&o->units, start, size);
}

/* Code sections are numbered from 1. */
static uint16_t section_of(const struct dp_elf_object *o, uint64_t addr)
{
	for (size_t i = 0; i < o->ncode; i++)
		if (addr - o->code[i].start < o->code[i].size)
			return (uint16_t)(i + 1);
	return SHN_ABS;
}

void dp_object_symbol(struct dp_elf_object *o, uint64_t addr, uint64_t size, const char *name)
{
	const Elf64_Sym s = {
	        .st_name = (Elf64_Word)o->names.len,
	        .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
	        .st_shndx = section_of(o, addr),
	        .st_value = addr,
	        .st_size = size,
	};
	dp_buf_put(&o->symbols, &s, sizeof(s));
	dp_buf_put(&o->names, name, strlen(name) + 1);
}

void dp_object_frames(struct dp_elf_object *o, const struct dp_frame_rows *rows)
{
	dp_frames_put(&o->frames, rows);
}

static void put_line(struct dp_elf_object *o, const char *word, uint64_t addr, uint64_t what)
{
	char line[64];
	const int n = snprintf(line, sizeof(line), "%s 0x%" PRIx64 " 0x%" PRIx64 "\n", word, addr, what);
	dp_buf_put(&o->sites, line, (size_t)n);
}

void dp_object_site(struct dp_elf_object *o, uint64_t addr, uint64_t len)
{
	put_line(o, "site", addr, len);
}

void dp_object_moved(struct dp_elf_object *o, uint64_t addr, uint64_t copy)
{
	put_line(o, "moved", addr, copy);
}

/*
 * ---- copying from another file ----------------------------------------------------------------------------------------------
 */

static const Elf64_Shdr *section_named(const Elf64_Ehdr *ehdr, const char *name)
{
	const uint8_t *file = (const uint8_t *)ehdr;
	const Elf64_Shdr *sh = (const void *)(file + ehdr->e_shoff);
	const char *names = (const char *)file + sh[ehdr->e_shstrndx].sh_offset;
	for (unsigned i = 1; i < ehdr->e_shnum; i++)
		if (!strcmp(names + sh[i].sh_name, name))
			return &sh[i];
	return NULL;
}

static void copy_symbols(struct dp_elf_object *o, const Elf64_Ehdr *ehdr, uint64_t at, const char *suffix)
{
	const uint8_t *file = (const uint8_t *)ehdr;
	const Elf64_Shdr *tab = section_named(ehdr, ".symtab"), *names = section_named(ehdr, ".strtab");
	char name[256];
	for (size_t i = 0; tab && names && i < tab->sh_size / sizeof(Elf64_Sym); i++) {
		const Elf64_Sym *s = (const Elf64_Sym *)(file + tab->sh_offset) + i;
		if (ELF64_ST_TYPE(s->st_info) != STT_FUNC || s->st_shndx == SHN_UNDEF)
			continue;
		snprintf(name, sizeof(name), "%s [%s]", (const char *)file + names->sh_offset + s->st_name, suffix);
		dp_object_symbol(o, at + s->st_value, s->st_size, name);
	}
}

/* `elf` is part of this program, so it is aligned and valid. */
void dp_object_copy(struct dp_elf_object *o, const void *elf, size_t n, uint64_t at, const char *suffix)
{
	const Elf64_Ehdr *ehdr = elf;
	if (n < sizeof(*ehdr))
		return;
	const Elf64_Shdr *frame = section_named(ehdr, ".debug_frame");
	copy_symbols(o, ehdr, at, suffix);
	if (frame)
		dp_frames_copy(&o->frames, (const uint8_t *)elf + frame->sh_offset, frame->sh_size, at);
}

/* ---- the file ------------------------------------------------------------------------------------------------------------ */

struct writer {
	struct dp_buf *out, headers, names;
	size_t base; /* start of the file in `out` */
};

static void section(struct writer *w, const char *name, Elf64_Shdr h, const struct dp_buf *contents)
{
	h.sh_name = (Elf64_Word)w->names.len;
	h.sh_offset = w->out->len - w->base;
	h.sh_addralign = h.sh_addralign ? h.sh_addralign : 1;
	if (contents) {
		h.sh_size = contents->len;
		dp_buf_put(w->out, contents->data, contents->len);
		dp_buf_grow(w->out, -contents->len & 7);
	}
	dp_buf_put(&w->headers, &h, sizeof(h));
	dp_buf_put(&w->names, name, strlen(name) + 1);
}

/*
 * The first one has the name that debuggers look for. SHF_WRITE: gdb may be told to read read-only sections from the file (set
 * trust-readonly-sections), but the code is only in the process.
 */
static void code_sections(struct writer *w, const struct dp_elf_object *o)
{
	char name[32] = ".text";
	for (size_t i = 0; i < o->ncode; i++) {
		if (i)
			snprintf(name, sizeof(name), ".text.%zu", i);
		section(w, name,
		        (Elf64_Shdr){.sh_type = SHT_NOBITS,
		                     .sh_flags = SHF_ALLOC | SHF_EXECINSTR | SHF_WRITE,
		                     .sh_addr = o->code[i].start,
		                     .sh_size = o->code[i].size,
		                     .sh_addralign = 16},
		        NULL);
	}
}

static void sections(struct writer *w, const struct dp_elf_object *o)
{
	const unsigned strings = (unsigned)o->ncode + OTHERS - 2;
	dp_buf_grow(&w->headers, sizeof(Elf64_Shdr));
	dp_buf_grow(&w->names, 1);
	code_sections(w, o);
	section(w, ".debug_frame", (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_addralign = 8}, &o->frames);
	section(w, ".debug_info", (Elf64_Shdr){.sh_type = SHT_PROGBITS}, &o->units);
	section(w, ".debug_abbrev", (Elf64_Shdr){.sh_type = SHT_PROGBITS}, &o->abbrev);
	section(w, ".dynprobe.sites", (Elf64_Shdr){.sh_type = SHT_PROGBITS}, &o->sites);
	section(w, ".symtab",
	        (Elf64_Shdr){.sh_type = SHT_SYMTAB,
	                     .sh_link = strings,
	                     .sh_info = (Elf64_Word)(o->symbols.len / sizeof(Elf64_Sym)),
	                     .sh_entsize = sizeof(Elf64_Sym),
	                     .sh_addralign = 8},
	        &o->symbols);
	section(w, ".strtab", (Elf64_Shdr){.sh_type = SHT_STRTAB}, &o->names);
	struct dp_buf all = {0}; /* including its own name */
	const char own[] = ".shstrtab";
	dp_buf_put(&all, w->names.data, w->names.len);
	dp_buf_put(&all, own, sizeof(own));
	section(w, own, (Elf64_Shdr){.sh_type = SHT_STRTAB}, &all);
	w->out->failed |= all.failed;
	dp_buf_fini(&all);
}

static void finish(struct writer *w, const struct dp_elf_object *o)
{
	Elf64_Ehdr head = {
	        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT, ELFOSABI_NONE},
	        .e_type = ET_EXEC,
	        .e_machine = EM_X86_64,
	        .e_version = EV_CURRENT,
	        .e_ehsize = sizeof(head),
	        .e_shentsize = sizeof(Elf64_Shdr),
	        .e_shnum = (Elf64_Half)(o->ncode + OTHERS),
	        .e_shstrndx = (Elf64_Half)(o->ncode + OTHERS - 1),
	};
	w->base = w->out->len;
	dp_buf_grow(w->out, sizeof(head));
	sections(w, o);
	head.e_shoff = w->out->len - w->base;
	dp_buf_put(w->out, w->headers.data, w->headers.len);
	if (!w->out->failed)
		memcpy(w->out->data + w->base, &head, sizeof(head));
}

struct dp_error *dp_object_finish(struct dp_elf_object *o, struct dp_buf *ret)
{
	struct writer w = {.out = ret};
	if (o->ncode + OTHERS >= SHN_LORESERVE)
		return dp_error(DP_TAG_OUTPUT, "%zu mappings are too many for one ELF file", o->ncode);
	finish(&w, o);
	const bool failed = o->failed || o->symbols.failed || o->names.failed || o->frames.failed || o->sites.failed || o->units.failed || o->abbrev.failed || ret->failed ||
	                    w.headers.failed || w.names.failed;
	dp_buf_fini(&w.headers);
	dp_buf_fini(&w.names);
	return failed ? dp_error_nomem() : NULL;
}
