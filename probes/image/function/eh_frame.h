/* SPDX-License-Identifier: MIT */
/*
 * Walks the entries of .eh_frame for what they say about places: where functions lie and where their LSDA is. (How to unwind
 * is not read here.) All addresses are the file's.
 */
#ifndef DP_PROBES_EH_FRAME_H
#define DP_PROBES_EH_FRAME_H

#include "probes/image/module.h"

/* A checked reader: once it ran past the end or met what it does not know, `bad` stays and all reads give 0. */
struct dp_reader {
	const uint8_t *p, *end;
	uint64_t vaddr; /* of *p */
	bool bad;
};

uint64_t dp_read_fixed(struct dp_reader *r, unsigned n);
uint64_t dp_read_uleb(struct dp_reader *r);
int64_t dp_read_sleb(struct dp_reader *r);
void dp_read_skip(struct dp_reader *r, uint64_t n);
/* A DW_EH_PE_... pointer: absolute or relative to itself; 0 stays 0. DW_EH_PE_omit reads nothing and gives 0. */
uint64_t dp_read_pointer(struct dp_reader *r, uint8_t encoding);

typedef bool (*dp_fde_each)(const struct dp_fde *fde, void *data); /* false: stop */
/* False if something could not be read; what could be read was given to `each`. */
bool dp_eh_frame_walk(const struct dp_span *eh_frame, bool exact, dp_fde_each each, void *data);

#endif
