/* SPDX-License-Identifier: MIT */
/* Loads a module's symbols on first use. */
#include "probes/image/debug_file.h"
#include "probes/elf/gopclntab.h"

const struct dp_symbols *dp_module_own_symbols(struct dp_module *m)
{
	if (!m->own_loaded && m->elf) {
		dp_symbols_load(&m->own, m->elf, m->elf, 0);
		if (!m->own.has_symtab)
			dp_gopclntab_load(&m->own, m->elf);
	}
	m->own_loaded = true;
	return &m->own;
}

const struct dp_symbols *dp_module_debug_symbols(struct dp_module *m)
{
	if (!m->debug_loaded && m->elf && !m->vdso && !dp_module_own_symbols(m)->has_symtab)
		dp_debug_symbols_load(m, &m->debug);
	m->debug_loaded = true;
	return &m->debug;
}

const struct dp_symbol_names *dp_module_own_names(struct dp_module *m)
{
	if (!m->own_names.loaded)
		dp_symbol_names_build(&m->own_names, dp_module_own_symbols(m));
	return &m->own_names;
}

const struct dp_symbol_names *dp_module_debug_names(struct dp_module *m)
{
	if (!m->debug_names.loaded)
		dp_symbol_names_build(&m->debug_names, dp_module_debug_symbols(m));
	return &m->debug_names;
}

const struct dp_symbol_index *dp_module_own_index(struct dp_module *m)
{
	if (!m->own_index.loaded)
		dp_symbol_index_build(&m->own_index, dp_module_own_symbols(m));
	return &m->own_index;
}

const struct dp_symbol_index *dp_module_debug_index(struct dp_module *m)
{
	if (!m->debug_index.loaded)
		dp_symbol_index_build(&m->debug_index, dp_module_debug_symbols(m));
	return &m->debug_index;
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
