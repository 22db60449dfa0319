/* SPDX-License-Identifier: MIT */
/* What the directory of a trace consists of. */
#ifndef DP_SESSION_TRACES_TRACES_FILES_H
#define DP_SESSION_TRACES_TRACES_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct dp_trace_files {
	uint64_t bytes;
	unsigned pieces;   /* traces in sub-folders (--rotate) */
	char foreign[256]; /* the first file that belongs to no trace; "" if there is none */
};
/* False: `path` is no directory (or a link to one), or has neither a trace of dynprobe nor pieces of one. */
bool dp_trace_files_look(const char *path, struct dp_trace_files *ret);
/* A process that has a file of the directory open; 0: none that we may look at. */
pid_t dp_trace_files_user(const char *path);

#endif
