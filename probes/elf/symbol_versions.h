/* SPDX-License-Identifier: MIT */
/* GNU symbol versions of .dynsym, which say which definition of a name is the default. */
#ifndef DP_PROBES_ELF_SYMBOL_VERSIONS_H
#define DP_PROBES_ELF_SYMBOL_VERSIONS_H

#include "probes/elf/elf_file.h"

struct dp_versions {
	struct dp_span versym;
	const char **name; /* by version index; NULL where unknown */
	size_t n;
};

void dp_versions_load(struct dp_versions *v, const struct dp_elf *elf);
void dp_versions_fini(struct dp_versions *v);
/* The version of dynamic symbol `i`, "" if it has none. */
const char *dp_versions_of(const struct dp_versions *v, size_t i, bool *hidden);

#endif
