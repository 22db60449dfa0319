/* SPDX-License-Identifier: MIT */
/*
 * Reads functions' addresses and LSDAs from .eh_frame, not the unwind rules. All addresses are the file's.
 */
#ifndef DP_PROBES_ELF_EH_FRAME_H
#define DP_PROBES_ELF_EH_FRAME_H

#include "probes/elf/elf_file.h"

struct dp_fde { /* addresses are the file's */
	uint64_t start, size;
	uint64_t lsda; /* 0 if there is none */
};

/* A bounded reader. Past the end, or at an unknown form, it sets `bad`; all reads then return 0. */
struct dp_reader {
	const uint8_t *p, *end;
	uint64_t vaddr; /* of *p */
	bool bad;
};

uint64_t dp_read_fixed(struct dp_reader *r, unsigned n);
uint64_t dp_read_uleb(struct dp_reader *r);
int64_t dp_read_sleb(struct dp_reader *r);
void dp_read_skip(struct dp_reader *r, uint64_t n);
/* A DW_EH_PE_... pointer: absolute or pc-relative; 0 stays 0. DW_EH_PE_omit reads nothing and gives 0. */
uint64_t dp_read_pointer(struct dp_reader *r, uint8_t encoding);

/* Finds .eh_frame in the file. `exact` is false if only the segment's end limits its size. */
bool dp_elf_eh_frame(const struct dp_elf *elf, struct dp_span *ret, bool *exact);

typedef bool (*dp_fde_each)(const struct dp_fde *fde, void *data); /* false stops the walk */
/* Calls `each` for every FDE that can be read. False if some could not. `exact`: the size is the section's, so zero entries only
 * separate lists. */
bool dp_eh_frame_walk(const struct dp_span *eh_frame, bool exact, dp_fde_each each, void *data);

#endif
