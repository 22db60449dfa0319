/* SPDX-License-Identifier: MIT */
#include "probes/elf/symbol_versions.h"

#include <stdlib.h>
#include <string.h>

#define HIDDEN 0x8000U

static void define(struct dp_versions *v, const struct dp_span *strings, const Elf64_Verdef *def, const Elf64_Verdaux *aux)
{
	size_t index = def->vd_ndx & ~HIDDEN;
	if ((def->vd_flags & VER_FLG_BASE) || aux->vda_name >= strings->size || index >= v->n)
		return;
	const char *name = (const char *)strings->bytes + aux->vda_name;
	if (memchr(name, '\0', strings->size - aux->vda_name))
		v->name[index] = name;
}

static bool fits(const struct dp_span *s, uint64_t at, size_t n)
{
	return at <= s->size && n <= s->size - at;
}

void dp_versions_load(struct dp_versions *v, const struct dp_elf *elf)
{
	GElf_Shdr shdr, ignored;
	struct dp_span defs, strings;
	*v = (struct dp_versions){0};
	if (!dp_elf_section(elf, NULL, SHT_GNU_versym, &shdr, &v->versym) ||
	    !dp_elf_section(elf, NULL, SHT_GNU_verdef, &shdr, &defs) || !dp_elf_section_at(elf, shdr.sh_link, &ignored, &strings))
		return;
	size_t limit = defs.size / sizeof(Elf64_Verdef);
	v->n = (limit < HIDDEN ? limit : HIDDEN) + 2;
	v->name = calloc(v->n, sizeof(*v->name));
	if (!v->name)
		v->n = 0;
	uint64_t at = 0;
	for (size_t i = 0; i < limit && v->n; i++) {
		Elf64_Verdef def;
		Elf64_Verdaux aux;
		if (!fits(&defs, at, sizeof(def)))
			return;
		memcpy(&def, defs.bytes + at, sizeof(def));
		if (!fits(&defs, at + def.vd_aux, sizeof(aux)))
			return;
		memcpy(&aux, defs.bytes + at + def.vd_aux, sizeof(aux));
		define(v, &strings, &def, &aux);
		if (!def.vd_next)
			return;
		at += def.vd_next;
	}
}

void dp_versions_fini(struct dp_versions *v)
{
	free(v->name);
	*v = (struct dp_versions){0};
}

const char *dp_versions_of(const struct dp_versions *v, size_t i, bool *hidden)
{
	uint16_t index;
	*hidden = false;
	if (i >= v->versym.size / sizeof(index))
		return "";
	memcpy(&index, v->versym.bytes + i * sizeof(index), sizeof(index));
	*hidden = (index & HIDDEN) != 0;
	index &= (uint16_t)~HIDDEN;
	return index < v->n && v->name[index] ? v->name[index] : "";
}
