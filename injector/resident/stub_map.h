/* SPDX-License-Identifier: MIT */
/*
 * For debuggers: the code that dynprobe mapped into a process, and the sites that lead to it. Reads the process only. It may run
 * or be stopped, be traced by anyone, and the tool need not be alive.
 */
#ifndef DP_INJECTOR_RESIDENT_STUB_MAP_H
#define DP_INJECTOR_RESIDENT_STUB_MAP_H

#include "trampoline/trampoline.h"

#include <sys/types.h>

struct dp_stub_map_stub {
	uint64_t site; /* the program's instruction that leads to it */
	uint64_t start;
	uint8_t *bytes;
	size_t n;
	struct dp_pc_pair pair[DP_SITE_PAIRS]; /* springboards are outside of the stub */
	uint8_t npairs;
	bool springboard; /* not the stub, but a jump on the way to it */
	uint8_t len; /* bytes at the site that the jump has or relies on; 0: springboards, and sites whose jump is gone */
	uint8_t changed; /* how many of them are the jump's own: instructions that begin there run in the stub only */
};
struct dp_stub_map {
	struct dp_image *image;
	struct dp_range *code; /* executable mappings, ascending in each group */
	size_t ncode;
	uint64_t *agent; /* addresses of agents that are identical to this tool's */
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
