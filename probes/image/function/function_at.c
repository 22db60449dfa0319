/* SPDX-License-Identifier: MIT */
/* Finds the function around an address. */
#include "probes/image/image_internal.h"

static bool starts_main(struct dp_module *m, uint64_t vaddr)
{
	uint64_t main_vaddr;
	if (!m->executable || dp_module_own_symbols(m)->has_symtab)
		return false;
	struct dp_error *err = dp_module_find_main(m, &main_vaddr);
	bool found = !err && main_vaddr == vaddr;
	dp_error_destroy(err);
	return found;
}

/* Names that a stripped program still has: _start is its entry point, and the code there contains main's address. */
static const char *name_without_symbol(struct dp_module *m, uint64_t vaddr)
{
	if (m->executable && vaddr == m->elf->ehdr.e_entry)
		return "_start";
	return starts_main(m, vaddr) ? "main" : "";
}

/*
 * The size of a sized symbol is used as it is. A symbol without size (a label in assembly) ends where the FDE around it ends;
 * without an FDE its size stays unknown.
 */
bool dp_module_function_at(struct dp_module *m, dp_addr addr, struct dp_function *ret)
{
	uint64_t vaddr = dp_module_vaddr(m, addr);
	if (!m->elf || !dp_elf_executable(m->elf, vaddr))
		return false;
	const struct dp_symbol *s = dp_module_symbol_at(m, vaddr);
	const struct dp_fde *fde = s && s->size ? NULL : dp_module_fde_at(m, vaddr);
	struct dp_function f = {.module = m, .name = ""};
	if (s && (!fde || (s->value >= fde->start && s->value - fde->start < fde->size))) {
		f.start = dp_module_addr(m, s->value);
		f.size = s->size ? s->size : fde ? fde->start + fde->size - s->value : 0;
		f.name = s->name;
	} else if (fde) {
		f.start = dp_module_addr(m, fde->start);
		f.size = fde->size;
		f.name = name_without_symbol(m, fde->start);
	} else {
		return false;
	}
	*ret = f;
	return true;
}
