/* SPDX-License-Identifier: MIT */
/*
 * A PLT entry jumps through a GOT word that a relocation sets to the function's address; the relocation has the function's
 * symbol. Linkers use several layouts (.plt, .plt.sec with endbr64, .plt.got); all have entries of 16 or 8 bytes with one `jmp
 * *word(%rip)`.
 */
#include "probes/point/select/plt.h"

#include "base/cleanup.h"
#include "probes/point/candidates.h"

#include <string.h>

struct words { /* maps GOT words to symbols */
	const struct dp_elf *elf;
	struct dp_span rela[2], symbols, strings;
};

static bool open_words(const struct dp_elf *elf, struct words *w)
{
	GElf_Shdr shdr, ignored;
	*w = (struct words){.elf = elf};
	if (!dp_elf_section(elf, NULL, SHT_DYNSYM, &shdr, &w->symbols) ||
	    !dp_elf_section_at(elf, shdr.sh_link, &ignored, &w->strings))
		return false;
	const bool plt = dp_elf_section(elf, ".rela.plt", 0, &ignored, &w->rela[0]);
	return dp_elf_section(elf, ".rela.dyn", 0, &ignored, &w->rela[1]) || plt;
}

static const char *symbol_name(const struct words *w, uint64_t index)
{
	Elf64_Sym sym;
	if (index >= w->symbols.size / sizeof(sym))
		return NULL;
	memcpy(&sym, w->symbols.bytes + index * sizeof(sym), sizeof(sym));
	const char *name = (const char *)w->strings.bytes + sym.st_name;
	return sym.st_name < w->strings.size && memchr(name, 0, w->strings.size - sym.st_name) ? name : NULL;
}

static bool is_word_of(const struct words *w, uint64_t word, const char *wanted)
{
	for (size_t k = 0; k < 2; k++)
		for (size_t at = 0; at + sizeof(Elf64_Rela) <= w->rela[k].size; at += sizeof(Elf64_Rela)) {
			Elf64_Rela rela;
			memcpy(&rela, w->rela[k].bytes + at, sizeof(rela));
			const char *name = rela.r_offset == word ? symbol_name(w, ELF64_R_SYM(rela.r_info)) : NULL;
			if (name && !strcmp(name, wanted))
				return true;
		}
	return false;
}

/* Finds the word through which the entry at `at` jumps. */
static bool word_of(const struct dp_span *s, size_t at, size_t size, uint64_t *ret)
{
	for (size_t i = at; i + 6 <= at + size && i + 6 <= s->size; i++)
		if (s->bytes[i] == 0xff && s->bytes[i + 1] == 0x25) {
			int32_t disp;
			memcpy(&disp, s->bytes + i + 2, sizeof(disp));
			*ret = s->vaddr + i + 6 + (uint64_t)(int64_t)disp;
			return true;
		}
	return false;
}

static void search(struct dp_module *m, const struct words *w, const char *section, const char *name, struct dp_selection *ret)
{
	GElf_Shdr shdr;
	struct dp_span s;
	uint64_t word;
	if (!dp_elf_section(m->elf, section, 0, &shdr, &s))
		return;
	const size_t size = shdr.sh_entsize == 8 ? 8 : 16;
	for (size_t at = 0; at + size <= s.size; at += size) {
		char *label = NULL;
		if (!word_of(&s, at, size, &word) || !is_word_of(w, word, name))
			continue;
		if (asprintf(&label, "%s@plt", name) < 0)
			label = NULL;
		struct dp_selected *one = dp_selection_add(ret, m, s.vaddr + at, true, label);
		if (one) {
			one->function = (struct dp_function){dp_module_addr(m, s.vaddr + at), size, "", m};
			one->offset = 0;
		}
	}
}

void dp_plt_find(struct dp_image *image, const struct dp_spec *spec, struct dp_selection *ret)
{
	static const char *const sections[] = {".plt.sec", ".plt", ".plt.got"};
	const char *at = strrchr(spec->symbol, '@');
	struct words w;
	if (!at || strcmp(at, "@plt") != 0)
		return;
	dp_auto_free char *name = strndup(spec->symbol, (size_t)(at - spec->symbol));
	for (size_t i = 0; name && i < image->nmodules; i++) {
		struct dp_module *m = image->module[i];
		if (!m->elf || m->vdso || !dp_module_matches(m, spec->module) || !open_words(m->elf, &w))
			continue;
		for (size_t k = 0; k < sizeof(sections) / sizeof(*sections); k++)
			search(m, &w, sections[k], name, ret);
	}
}
