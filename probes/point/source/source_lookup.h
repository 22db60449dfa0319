/* SPDX-License-Identifier: MIT */
/* What the thread of source_lines.c does: one file's debug information, and one address in it. */
#ifndef DP_PROBES_POINT_SOURCE_SOURCE_LOOKUP_H
#define DP_PROBES_POINT_SOURCE_SOURCE_LOOKUP_H

#include "probes/point/source/source_lines.h"

struct dp_source_file { /* owned by the caller, with its texts */
	char *path, *root, *build_id;
	uint64_t inode;
	bool opened;
	struct dp_module *module; /* of this thread only; NULL: no file, or another one */
	struct dp_debug *debug;   /* of `module`; NULL: none */
};
/* Frames from malloc(); their texts belong to the file, but for `function`. */
struct dp_source dp_source_lookup(struct dp_source_file *file, uint64_t vaddr);
void dp_source_fini(struct dp_source *source);
void dp_source_file_fini(struct dp_source_file *file);

#endif
