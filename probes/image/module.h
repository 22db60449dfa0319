/* SPDX-License-Identifier: MIT */
/* A module: an ELF file mapped in the target. What is loaded from the file is shared by the modules of all processes (parsed.h).
 */
#ifndef DP_PROBES_IMAGE_MODULE_H
#define DP_PROBES_IMAGE_MODULE_H

#include "probes/image/maps.h"
#include "probes/image/parsed.h"

#define DP_CALLED_MAX 2u

struct dp_module {
	uint64_t id; /* from 1; no other module of any image has had it */
	char *path, *name;
	char *called[DP_CALLED_MAX]; /* only of the executable: further names, or NULL; module_names.c */
	dp_addr start, end;          /* whole pages around all segments */
	int64_t bias;
	uint64_t inode;
	char *started;            /* only of the executable: the last part of the path by which it was started, or NULL */
	const char *mapped_path;  /* as in maps; the image owns it */
	const char *root;         /* the image's */
	struct dp_parsed *parsed; /* what the file contains */
	struct dp_elf *elf;       /* the same as in `parsed`: NULL if the file is not usable; `failure` then */
	struct dp_error *failure; /* says why */
	bool vdso;
	bool executable; /* the image's [0] */
	bool lasting;    /* never_unloaded.c */
	/* That there is no debug file holds for this module only: one may be installed before the next process starts. */
	bool debug_searched;
	struct dp_error *no_debug; /* debug.c: why there is no debug information */
	uint64_t *pads;            /* lsda.c: addresses of parsed->pads in the target, or NULL */
	struct dp_debug *debug;    /* debug.c: parsed->debug_info for this module's addresses, or NULL; from malloc() */
};

/* `path` is as in maps. Takes `parsed`, also on failure. The caller sets the bias. */
struct dp_module *dp_module_create(const char *path, const char *root, struct dp_parsed *parsed);
/* From now on its file counts as unusable. The caller sets the failure. */
void dp_module_disown(struct dp_module *m);
struct dp_module *dp_module_destroy(struct dp_module *m);
/* A new error that says why the file cannot be used. */
struct dp_error *dp_module_failure(const struct dp_module *m) DP_MUST_CHECK;

static inline uint64_t dp_module_vaddr(const struct dp_module *m, dp_addr addr)
{
	return addr.v - (uint64_t)m->bias;
}

static inline dp_addr dp_module_addr(const struct dp_module *m, uint64_t vaddr)
{
	return dp_addr_of(vaddr + (uint64_t)m->bias);
}

/* module_names.c: true if a user may mean `m` by this name or pattern (NULL: any). The vdso matches only if it is named. */
bool dp_module_matches(const struct dp_module *m, const char *name);
/* The same for a mapped file, without the further names of an executable. */
bool dp_module_path_matches(const char *path, const char *name);

/* module_file.c: opens the file of a mapping and checks its inode. Falls back to /proc/PID/exe and /proc/PID/map_files. */
struct dp_error *dp_module_open(const struct dp_map *map, const char *root, int pid, int *fd) DP_MUST_CHECK;

/* module_symbols.c: loaded on first use. Debug symbols are loaded only if the file itself has no .symtab. */
const struct dp_symbols *dp_module_own_symbols(struct dp_module *m);
const struct dp_symbols *dp_module_debug_symbols(struct dp_module *m);
const struct dp_symbol_names *dp_module_own_names(struct dp_module *m);
const struct dp_symbol_names *dp_module_debug_names(struct dp_module *m);
const struct dp_symbol_index *dp_module_own_index(struct dp_module *m);
const struct dp_symbol_index *dp_module_debug_index(struct dp_module *m);
/* The function symbol around file address `vaddr`, or NULL. */
const struct dp_symbol *dp_module_symbol_at(struct dp_module *m, uint64_t vaddr);

/* eh_functions.c: functions from .eh_frame, loaded on first use. */
const struct dp_fdes *dp_module_fdes(struct dp_module *m);
const struct dp_fde *dp_module_fde_at(struct dp_module *m, uint64_t vaddr);

/* find_main.c: finds the file address of `main` from the code at the entry point, once. */
struct dp_error *dp_module_find_main(struct dp_module *m, uint64_t *vaddr) DP_MUST_CHECK;

/* readable.c */
void dp_readables_fini(struct dp_readable **readables);

/* function_at.c: the function around `addr`, which must be in `m`. */
bool dp_module_function_at(struct dp_module *m, dp_addr addr, struct dp_function *ret);

#endif
