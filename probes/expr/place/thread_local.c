/* SPDX-License-Identifier: MIT */
/*
 * Locates a library's thread-local variables (U. Drepper, ELF Handling for Thread-Local Storage, 3.4). The dynamic loader gives
 * each module a number and writes it where the module needs it (R_X86_64_DTPMOD64). A thread's vector, at the thread pointer plus
 * 8, has the module's block at that index. The layout is the C library's; only glibc's is supported. Modules loaded at the start
 * have a block in every thread. For others the vector may still have an earlier module's block, so they are left out.
 */
#include "probes/expr/scope/scope_internal.h"
#include "probes/hazard/hazard.h"
#include "probes/image/module.h"

#include <string.h>

/* A thread without a block yet has -1 as its address; after that nothing is mapped for this many bytes. */
enum { BLOCK_MAX = 60000, WORD = 8, VECTOR = 8, ENTRY = 16 };

static bool dynamic_table(const struct dp_elf *elf, int64_t tag, struct dp_span *ret)
{
	uint64_t at;
	return dp_elf_dynamic(elf, tag, &at) && dp_elf_at(elf, at, ret);
}

static bool symbol_at(const struct dp_elf *elf, uint64_t i, Elf64_Sym *ret, const char **name)
{
	struct dp_span symbols, strings;
	if (!dynamic_table(elf, DT_SYMTAB, &symbols) || !dynamic_table(elf, DT_STRTAB, &strings) ||
	    i >= symbols.size / sizeof(*ret))
		return false;
	memcpy(ret, symbols.bytes + i * sizeof(*ret), sizeof(*ret));
	if (ret->st_name >= strings.size || !memchr(strings.bytes + ret->st_name, 0, strings.size - ret->st_name))
		return false;
	*name = (const char *)strings.bytes + ret->st_name;
	return true;
}

/* False if another module has a variable with that name: that one may be meant. */
static bool is_alone(struct dp_image *image, const struct dp_module *m, const char *name)
{
	const size_t length = strlen(name);
	for (size_t i = 0; i < dp_image_nmodules(image); i++) {
		struct dp_module *other = dp_image_module(image, i);
		const struct dp_symbols *symbols = other == m || !other->elf ? NULL : dp_module_own_symbols(other);
		for (size_t k = 0; symbols && k < symbols->n; k++)
			if (symbols->symbol[k].type == STT_TLS && symbols->symbol[k].len == length &&
			    !memcmp(symbols->symbol[k].name, name, length))
				return false;
	}
	return true;
}

static bool is_own(struct dp_scope *s, const struct dp_module *m, uint64_t i)
{
	Elf64_Sym symbol;
	const char *name;
	if (!i)
		return true;
	return symbol_at(m->elf, i, &symbol, &name) && symbol.st_shndx != SHN_UNDEF && is_alone(s->image, m, name);
}

/* Finds the word into which the loader writes the module's number. */
static bool number_of(struct dp_scope *s, const struct dp_module *m, uint64_t *ret)
{
	struct dp_span table;
	uint64_t size;
	if (!dynamic_table(m->elf, DT_RELA, &table) || !dp_elf_dynamic(m->elf, DT_RELASZ, &size))
		return false;
	if (size > table.size)
		size = table.size;
	for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= size; at += sizeof(Elf64_Rela)) {
		Elf64_Rela r;
		memcpy(&r, table.bytes + at, sizeof(r));
		if (ELF64_R_TYPE(r.r_info) == R_X86_64_DTPMOD64 && is_own(s, m, ELF64_R_SYM(r.r_info))) {
			*ret = r.r_offset + (uint64_t)m->bias;
			return true;
		}
	}
	return false;
}

static bool is_glibc(struct dp_image *image)
{
	for (size_t i = 0; i < dp_image_nmodules(image); i++)
		if (!strcmp(dp_module_name(dp_image_module(image, i)), "libc.so.6"))
			return true;
	return false;
}

struct dp_expr *dp_thread_local_of_library(struct dp_scope *s, uint64_t size, uint64_t offset)
{
	struct dp_arena *a = &s->arena;
	const struct dp_module *m = s->at.site.module;
	uint64_t number;
	if (size > BLOCK_MAX || !is_glibc(s->image) || !dp_image_never_unloaded(s->image, s->at.site.addr) ||
	    !number_of(s, m, &number))
		return NULL;
	struct dp_expr *thread = dp_build(a, (struct dp_expr){.kind = DP_EXPR_THREAD});
	struct dp_expr *vector = dp_build_load(a, dp_build_add(a, thread, VECTOR), WORD, false);
	struct dp_expr *entry =
	        dp_build_binary(a, DP_OP_MUL, dp_build_load(a, dp_build_const(a, number), WORD, false), dp_build_const(a, ENTRY));
	return dp_build_add(a, dp_build_load(a, dp_build_binary(a, DP_OP_ADD, vector, entry), WORD, false), offset);
}
