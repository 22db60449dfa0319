/* SPDX-License-Identifier: MIT */
#include "probes/elf/symbols.h"

#include "probes/elf/symbol_versions.h"

#include <stdlib.h>
#include <string.h>

static bool wanted_type(unsigned type)
{
	return type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE || type == STT_OBJECT || type == STT_TLS ||
	       type == STT_COMMON;
}

/* Ensures room for one more. */
static struct dp_symbol *append(struct dp_symbols *s)
{
	if (s->n == s->capacity) {
		size_t capacity = s->capacity ? 2 * s->capacity : 256;
		struct dp_symbol *grown = realloc(s->symbol, capacity * sizeof(*grown));
		if (!grown) {
			s->failed = true;
			return NULL;
		}
		s->symbol = grown;
		s->capacity = capacity;
	}
	return &s->symbol[s->n];
}

bool dp_symbols_add(struct dp_symbols *s, const struct dp_symbol *symbol)
{
	struct dp_symbol *to = append(s);
	if (!to)
		return false;
	*to = *symbol;
	s->n++;
	return true;
}

/* .symtab has versions in the name: foo@@V is the default one, foo@V is not. */
static bool cut_version(struct dp_symbols *s, struct dp_symbol *symbol)
{
	const char *at = memchr(symbol->name, '@', symbol->len);
	if (!at || at == symbol->name)
		return true;
	char **grown = realloc(s->copies, (s->ncopies + 1) * sizeof(*grown));
	if (!grown)
		return false;
	s->copies = grown;
	symbol->len = (uint32_t)(at - symbol->name);
	symbol->version = at + strspn(at, "@");
	symbol->hidden = at[1] != '@';
	symbol->name = s->copies[s->ncopies] = strndup(symbol->name, symbol->len);
	if (!symbol->name)
		return false;
	s->ncopies++;
	return true;
}

struct table { /* .symtab or .dynsym of one file */
	struct dp_span symbols, strings;
	const struct dp_elf *text;
	uint64_t delta;
	const struct dp_versions *versions; /* NULL: versions are in the names */
	const char *file;                   /* of the local symbols that follow; or NULL */
};

/* A file's name is before its local symbols; the names of global ones come last. */
static bool is_file(struct table *t, const Elf64_Sym *sym)
{
	if (ELF64_ST_TYPE(sym->st_info) != STT_FILE)
		return false;
	const char *name = (const char *)t->strings.bytes + sym->st_name;
	const size_t most = sym->st_name < t->strings.size ? t->strings.size - sym->st_name : 0;
	t->file = most && *name && strnlen(name, most) < most ? name : NULL;
	return true;
}

static void load_one(struct dp_symbols *s, struct table *t, size_t i)
{
	Elf64_Sym sym;
	memcpy(&sym, t->symbols.bytes + i * sizeof(sym), sizeof(sym));
	if (is_file(t, &sym) || sym.st_shndx == SHN_UNDEF || sym.st_shndx == SHN_ABS ||
	    !wanted_type(ELF64_ST_TYPE(sym.st_info)) || !sym.st_name || sym.st_name >= t->strings.size)
		return;
	const char *name = (const char *)t->strings.bytes + sym.st_name;
	size_t len = strnlen(name, t->strings.size - sym.st_name);
	struct dp_symbol *to = append(s);
	if (!to || !len || len == t->strings.size - sym.st_name || len > UINT32_MAX)
		return;
	*to = (struct dp_symbol){.value = sym.st_value + t->delta, .size = sym.st_size, .name = name, .version = ""};
	to->len = (uint32_t)len;
	to->type = ELF64_ST_TYPE(sym.st_info);
	to->bind = ELF64_ST_BIND(sym.st_info);
	to->file = to->bind == STB_LOCAL ? t->file : NULL;
	bool may_be_code = to->type == STT_FUNC || to->type == STT_GNU_IFUNC || to->type == STT_NOTYPE;
	to->code = may_be_code && dp_elf_executable(t->text, to->value);
	if (t->versions)
		to->version = dp_versions_of(t->versions, i, &to->hidden);
	else if (!cut_version(s, to))
		s->failed = true;
	s->n++;
}

static bool load_table(struct dp_symbols *s, const struct dp_elf *from, uint32_t type, struct table *t)
{
	GElf_Shdr shdr, ignored;
	if (!dp_elf_section(from, NULL, type, &shdr, &t->symbols) ||
	    !dp_elf_section_at(from, shdr.sh_link, &ignored, &t->strings))
		return false;
	size_t n = t->symbols.size / sizeof(Elf64_Sym);
	for (size_t i = 1; i < n && !s->failed; i++)
		load_one(s, t, i);
	return n > 1;
}

void dp_symbols_load(struct dp_symbols *s, const struct dp_elf *from, const struct dp_elf *text, uint64_t delta)
{
	struct dp_versions versions;
	struct table t = {.text = text, .delta = delta};
	s->has_symtab |= load_table(s, from, SHT_SYMTAB, &t);
	dp_versions_load(&versions, from);
	t.versions = &versions;
	t.file = NULL;
	load_table(s, from, SHT_DYNSYM, &t);
	dp_versions_fini(&versions);
}

void dp_symbols_fini(struct dp_symbols *s)
{
	for (size_t i = 0; i < s->ncopies; i++)
		free(s->copies[i]);
	free(s->copies);
	free(s->symbol);
	dp_elf_destroy(s->elf);
	*s = (struct dp_symbols){0};
}

struct dp_symbol_name dp_symbol_name_parse(const char *text)
{
	struct dp_symbol_name name = {.base = text, .len = strlen(text)};
	const char *at = strchr(text, '@');
	if (!at || at == text)
		return name;
	name.len = (size_t)(at - text);
	name.version = at + strspn(at, "@");
	name.version_len = strlen(name.version);
	return name;
}

bool dp_symbol_matches(const struct dp_symbol *s, const struct dp_symbol_name *name)
{
	if (s->len != name->len || memcmp(s->name, name->base, name->len) != 0)
		return false;
	return !name->version || !strcmp(s->version, name->version);
}
