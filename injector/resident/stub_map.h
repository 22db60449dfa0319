/* SPDX-License-Identifier: MIT */
/*
 * What stands in a process, for debuggers: the code that dynprobe mapped there and the places that lead to it. Only read, from
 * the process itself, while it runs or is stopped, whoever traces it and whether or not the tool that made all this still lives.
 */
#ifndef DP_INJECTOR_VISIBLE_H
#define DP_INJECTOR_VISIBLE_H

#include "trampoline/trampoline.h"

#include <sys/types.h>

struct dp_stub_map_stub {
	uint64_t site; /* the program's instruction that led to it */
	uint64_t start;
	uint8_t *bytes;
	size_t n;
	struct dp_pc_pair pair[DP_SITE_PAIRS]; /* some lie outside of the stub: its springboards */
	uint8_t npairs;
	bool springboard; /* not the stub itself, but a jump on the way to it */
};
struct dp_stub_map {
	struct dp_image *image;
	struct dp_range *code; /* executable mappings, ascending in each group */
	size_t ncode;
	uint64_t *agent; /* where agents stand that are the same as this tool's */
	size_t nagents;
	struct dp_stub_map_stub *stub;
	size_t nstubs;
	size_t foreign; /* groups that this version cannot read */
};
struct dp_error *dp_stub_map_read(pid_t pid, struct dp_stub_map *ret) DP_MUST_CHECK;
void dp_stub_map_fini(struct dp_stub_map *v);

/* This tool's agent as an ELF file, with symbols and .debug_frame; its code is linked to address 0. */
const void *dp_agent_elf(size_t *n);

#endif
