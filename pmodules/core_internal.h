/* SPDX-License-Identifier: MIT */
/* A core file as it was read. Private to core*.c. */
#ifndef DP_PMODULES_CORE_INTERNAL_H
#define DP_PMODULES_CORE_INTERNAL_H

#include "pmodules/core.h"

#include <elf.h>

struct dp_core_load { /* memory as of the dump: `size` bytes, the first `held` of which are in the core */
	uint64_t start, size, held, offset;
	uint32_t flags; /* PF_ */
};
struct dp_core_file { /* a mapped file, of NT_FILE */
	uint64_t start, end, offset;
	char *path;
	int fd; /* -1: not opened, or not to be had (tried) */
	bool tried;
};
struct dp_core {
	int fd;
	uint64_t size, notes; /* bytes of the file; of notes read */
	char *path;
	struct dp_core_load *load; /* ascending, disjoint */
	size_t nloads;
	struct dp_core_file *file; /* ascending, disjoint */
	size_t nfiles;
	struct dp_still_thread *thread; /* in the order of the core */
	size_t nthreads;
	pid_t pid;
	char comm[64], args[128];
	uint64_t vdso, phdr, entry, phnum; /* of the auxiliary vector, or 0 */
};

struct dp_error *dp_core_bad(const struct dp_core *c, const char *fmt, ...) __attribute__((format(printf, 2, 3))) DP_MUST_CHECK;
/* core_notes.c: threads, files, auxiliary vector. */
struct dp_error *dp_core_notes(struct dp_core *c, const uint8_t *notes, size_t n) DP_MUST_CHECK;

#endif
