/* SPDX-License-Identifier: MIT */
/* Reads a Go program's functions from the table that its runtime uses to unwind. The table survives stripping. */
#ifndef DP_PROBES_ELF_GOPCLNTAB_H
#define DP_PROBES_ELF_GOPCLNTAB_H

#include "probes/elf/symbols.h"

struct dp_gopclntab { /* offsets are from the table's start */
	struct dp_span s;
	uint64_t n;            /* number of functions */
	uint64_t names, pairs; /* offsets */
	uint64_t steps;        /* offset of the tables that say how large a frame is; 0: not read */
	uint64_t records;      /* base of the records' offsets */
	uint64_t text;         /* base of the starts */
	unsigned width;        /* size of a start, bytes */
	unsigned flags;        /* offset of a function's flags in its record */
};

struct dp_go_pieces {  /* of a function's code */
	uint64_t size; /* of the function, bytes */
	/* From this offset to the next piece's, the return address is at rsp + pushed. An outermost function has no caller. */
	void (*piece)(uint64_t offset, uint64_t pushed, bool outermost, void *data);
	void *data;
};

/* Finds the table's bytes. False if the file has none. */
bool dp_gopclntab_find(const struct dp_elf *elf, struct dp_span *ret);
/* Adds a symbol for each function. Damaged entries add nothing. Names belong to the file. */
void dp_gopclntab_load(struct dp_symbols *symbols, const struct dp_elf *elf);

/* False if the file has no table of a known form. */
bool dp_gopclntab_open(const struct dp_elf *elf, struct dp_gopclntab *ret);
/*
 * Calls to->piece for each piece of the function that starts at `start` (file address). False if the table does not have it, or
 * if it changes stacks. A damaged table gives wrong pieces or none, but ascending ones below to->size.
 */
bool dp_gopclntab_frames(const struct dp_gopclntab *t, uint64_t start, const struct dp_go_pieces *to);

#endif
