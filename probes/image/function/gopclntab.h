/* SPDX-License-Identifier: MIT */
/* The functions of a Go program by the table that its runtime unwinds by, which stripping leaves in place. */
#ifndef DP_PROBES_GOPCLNTAB_H
#define DP_PROBES_GOPCLNTAB_H

#include "probes/elf/symbols.h"

/* The table's bytes. False if the file has none. */
bool dp_gopclntab_find(const struct dp_elf *elf, struct dp_span *ret);
/* Adds a symbol for each function. What is damaged adds nothing; names belong to the file. */
void dp_gopclntab_load(struct dp_symbols *symbols, const struct dp_elf *elf);

#endif
