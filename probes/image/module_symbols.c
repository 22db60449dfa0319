/* SPDX-License-Identifier: MIT */
/* Loads a module's symbols on first use. */
#include "probes/elf/gopclntab.h"
#include "probes/image/debug_file.h"

const struct dp_symbols *dp_module_own_symbols(struct dp_module *m)
{
	if (!m->parsed->own_loaded && m->elf) {
		dp_symbols_load(&m->parsed->own, m->elf, m->elf, 0);
		if (!m->parsed->own.has_symtab)
			dp_gopclntab_load(&m->parsed->own, m->elf);
	}
	m->parsed->own_loaded = true;
	return &m->parsed->own;
}

const struct dp_symbols *dp_module_debug_symbols(struct dp_module *m)
{
	struct dp_parsed *p = m->parsed;
	if (!p->debug_loaded && !m->debug_searched && m->elf && !m->vdso && !dp_module_own_symbols(m)->has_symtab) {
		dp_symbols_fini(&p->debug);
		dp_symbol_index_fini(&p->debug_index);
		dp_symbol_names_fini(&p->debug_names);
		dp_debug_symbols_load(m, &p->debug);
		p->debug_loaded = p->debug.elf;
	}
	m->debug_searched = true;
	return &p->debug;
}

const struct dp_symbol_names *dp_module_own_names(struct dp_module *m)
{
	if (!m->parsed->own_names.loaded)
		dp_symbol_names_build(&m->parsed->own_names, dp_module_own_symbols(m));
	return &m->parsed->own_names;
}

const struct dp_symbol_names *dp_module_debug_names(struct dp_module *m)
{
	const struct dp_symbols *symbols = dp_module_debug_symbols(m);
	if (!m->parsed->debug_names.loaded)
		dp_symbol_names_build(&m->parsed->debug_names, symbols);
	return &m->parsed->debug_names;
}

const struct dp_symbol_index *dp_module_own_index(struct dp_module *m)
{
	if (!m->parsed->own_index.loaded)
		dp_symbol_index_build(&m->parsed->own_index, dp_module_own_symbols(m));
	return &m->parsed->own_index;
}

const struct dp_symbol_index *dp_module_debug_index(struct dp_module *m)
{
	const struct dp_symbols *symbols = dp_module_debug_symbols(m);
	if (!m->parsed->debug_index.loaded)
		dp_symbol_index_build(&m->parsed->debug_index, symbols);
	return &m->parsed->debug_index;
}

/* The debug file is read only if the file itself has no symbol here, or one without a size. */
const struct dp_symbol *dp_module_symbol_at(struct dp_module *m, uint64_t vaddr)
{
	const struct dp_symbol *own = dp_symbol_index_at(dp_module_own_index(m), vaddr);
	if (own && own->size)
		return own;
	const struct dp_symbol *debug = dp_symbol_index_at(dp_module_debug_index(m), vaddr);
	return debug && (debug->size || !own || debug->value > own->value) ? debug : own;
}
