/* SPDX-License-Identifier: MIT */
/* A parsed core file. Private to core*.c. */
#ifndef DP_PMODULES_SOURCE_CORE_INTERNAL_H
#define DP_PMODULES_SOURCE_CORE_INTERNAL_H

#include "pmodules/source/core.h"

#include <elf.h>

struct dp_core_load { /* memory at the time of the dump: `size` bytes; the core has the first `held` */
	uint64_t start, size, held, offset;
	uint32_t flags; /* PF_ */
};
struct dp_core_file { /* a mapped file, of NT_FILE */
	uint64_t start, end, offset;
	char *path;
	int fd; /* -1: not opened, or cannot be opened (tried) */
	bool tried;
	bool rebuilt; /* not the file that was mapped: do not read it */
};
#define DP_CORE_MODULES_MOST 4096u /* files that are inspected; a process has some hundreds */
#define DP_CORE_DOUBTS_MOST  16u
struct dp_core {
	int fd;
	uint64_t size, notes; /* bytes of the file; bytes of notes read */
	char *path;
	struct dp_core_load *load; /* ascending, disjoint */
	size_t nloads;
	struct dp_core_file *file; /* ascending, disjoint */
	size_t nfiles;
	struct dp_stopped_thread *thread; /* in the order of the core */
	size_t nthreads;
	pid_t pid;
	char comm[64], args[128];
	uint64_t lacking; /* bytes of memory that were dumped but truncated */
	char *doubt[DP_CORE_DOUBTS_MOST];
	size_t ndoubts;
	uint64_t vdso, phdr, entry, phnum, random; /* from the auxiliary vector, or 0 */
};

struct dp_error *dp_core_bad(const struct dp_core *c, const char *fmt, ...) __attribute__((format(printf, 2, 3))) DP_MUST_CHECK;
/* Reads bytes of the file; false if it is shorter. */
bool dp_core_get(const struct dp_core *c, uint64_t offset, void *buf, size_t n);
/* core_header.c: checks that this is a core file of this architecture; *n: the program headers, all within the file. */
struct dp_error *dp_core_header(const struct dp_core *c, Elf64_Ehdr *e, size_t *n) DP_MUST_CHECK;
/* Records a warning about a core that is used anyway; only the first few are kept. */
void dp_core_doubt(struct dp_core *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Memory that is in the core itself. */
size_t dp_core_read_held(const struct dp_core *c, uint64_t addr, void *buf, size_t n);
/* core_build.c: is `path` a different program from the one mapped at `f`? Stores the reason. */
bool dp_core_is_rebuilt(const struct dp_core *c, const struct dp_core_file *f, const char *path, char *why, size_t size);
void dp_core_check_files(struct dp_core *c);
/* core_notes.c: threads, files, auxiliary vector. */
struct dp_error *dp_core_notes(struct dp_core *c, const uint8_t *notes, size_t n) DP_MUST_CHECK;

#endif
