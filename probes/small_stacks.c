/* SPDX-License-Identifier: MIT */
/*
 * Goroutines start with stacks of 2 KiB, and only some 800 bytes are promised to a function that has not asked for more. Every Go
 * program carries the table that its runtime unwinds by.
 */
#include "probes/module.h"
#include "probes/probes.h"

bool dp_module_small_stacks(struct dp_module *m)
{
	static const char *const names[] = {".gopclntab", ".data.rel.ro.gopclntab"};
	GElf_Shdr shdr;
	struct dp_span span;
	for (size_t i = 0; m->elf && i < sizeof(names) / sizeof(*names); i++)
		if (dp_elf_section(m->elf, names[i], 0, &shdr, &span))
			return true;
	return false;
}
