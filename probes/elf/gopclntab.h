/* SPDX-License-Identifier: MIT */
/* Reads a Go program's functions from the table that its runtime uses to unwind. The table survives stripping. */
#ifndef DP_PROBES_ELF_GOPCLNTAB_H
#define DP_PROBES_ELF_GOPCLNTAB_H

#include "probes/elf/symbols.h"

/* Finds the table's bytes. False if the file has none. */
bool dp_gopclntab_find(const struct dp_elf *elf, struct dp_span *ret);
/* Adds a symbol for each function. Damaged entries add nothing. Names belong to the file. */
void dp_gopclntab_load(struct dp_symbols *symbols, const struct dp_elf *elf);

#endif
