/* SPDX-License-Identifier: MIT */
/* A core file as it was read. Private to core*.c. */
#ifndef DP_PMODULES_CORE_INTERNAL_H
#define DP_PMODULES_CORE_INTERNAL_H

#include "pmodules/source/core.h"

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
	bool rebuilt; /* it is not the file that was mapped: nothing is read from it */
};
#define DP_CORE_MODULES_MOST 4096u /* files that are looked into; a process has some hundreds */
#define DP_CORE_DOUBTS_MOST  16u
struct dp_core {
	int fd;
	uint64_t size, notes; /* bytes of the file; of notes read */
	char *path;
	struct dp_core_load *load; /* ascending, disjoint */
	size_t nloads;
	struct dp_core_file *file; /* ascending, disjoint */
	size_t nfiles;
	struct dp_stopped_thread *thread; /* in the order of the core */
	size_t nthreads;
	pid_t pid;
	char comm[64], args[128];
	uint64_t lacking; /* bytes of memory that were dumped and are cut off */
	char *doubt[DP_CORE_DOUBTS_MOST];
	size_t ndoubts;
	uint64_t vdso, phdr, entry, phnum; /* of the auxiliary vector, or 0 */
};

struct dp_error *dp_core_bad(const struct dp_core *c, const char *fmt, ...) __attribute__((format(printf, 2, 3))) DP_MUST_CHECK;
/* Bytes of the file; false if it has not so many. */
bool dp_core_get(const struct dp_core *c, uint64_t offset, void *buf, size_t n);
/* core_header.c: the header of a core file of this machine, and the number of its program headers, which lie within it. */
struct dp_error *dp_core_header(const struct dp_core *c, Elf64_Ehdr *e, size_t *n) DP_MUST_CHECK;
/* What the user has to know of a core that is used all the same; the first few are kept. */
void dp_core_doubt(struct dp_core *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Memory that the core itself holds. */
size_t dp_core_read_held(const struct dp_core *c, uint64_t addr, void *buf, size_t n);
/* core_build.c: does `path` hold another program than the one that was mapped at `f`? Says why. */
bool dp_core_is_rebuilt(const struct dp_core *c, const struct dp_core_file *f, const char *path, char *why, size_t size);
void dp_core_check_files(struct dp_core *c);
/* core_notes.c: threads, files, auxiliary vector. */
struct dp_error *dp_core_notes(struct dp_core *c, const uint8_t *notes, size_t n) DP_MUST_CHECK;

#endif
