/* SPDX-License-Identifier: MIT */
/* Internals of opened debug information. */
#ifndef DP_PROBES_DEBUG_DEBUG_INTERNAL_H
#define DP_PROBES_DEBUG_DEBUG_INTERNAL_H

#include "probes/debug/debug.h"
#include "probes/image/module.h"

#include <elfutils/libdwfl.h>

struct dp_debug_range {
	uint64_t start, end;
	Dwarf_CU *cu;
};

struct dp_debug_file { /* one file, opened for libdw */
	int fd;
	Elf *elf;
	Dwarf *dwarf;
	struct dp_elf *bytes; /* the memory that `elf` reads, if it has no fd */
};

struct dp_debug_scopes; /* where the functions of one unit are */

#define DP_DEBUG_LACKS 8

struct dp_debug_state {
	struct dp_debug open; /* the public part, for addresses of the file */
	struct dp_debug_file main, alt;
	Dwfl *dwfl; /* set if libdw found the file itself; it then owns main.dwarf */
	char *path, *missing;
	struct dp_debug_range *range; /* ascending starts */
	size_t nranges, capacity;
	bool ranges_known, table_fails;
	struct dp_debug_scopes *scopes; /* a hash table of them, NULL while it is empty */
	struct {
		const void *unit; /* its entry's address */
		char name[DP_DEBUG_LACKS][64];
		unsigned n;
	} lacks;
};

/* debug_open.c: these open a file for reading. They return false if it has no debug information. */
bool dp_debug_file_open(int fd, struct dp_debug_file *ret);      /* takes ownership of fd */
bool dp_debug_file_open_kept(int fd, struct dp_debug_file *ret); /* the same, through the cache of debug_cache.h */
bool dp_debug_memory_open(const struct dp_elf *elf, struct dp_debug_file *ret);
void dp_debug_file_close(struct dp_debug_file *f);

/* debug_names.c: a section's bytes, empty if missing; whether a debug section is still compressed. */
struct dp_span dp_debug_section(Dwarf *dwarf, const char *name);
bool dp_debug_is_packed(Dwarf *dwarf);
/* debug_scopes.c: frees what dp_debug_scopes_at() has kept. */
void dp_debug_scopes_destroy(struct dp_debug_scopes *scopes);
/* debug_alt.c: opens the dwz file. False if it is needed but missing; `name` is then its name. */
bool dp_debug_alt_open(struct dp_module *m, struct dp_debug_state *d, const char **name);
/* debug_fetch.c: asks debuginfod if the user has set servers. */
bool dp_debug_fetch(struct dp_module *m, struct dp_debug_state *d);

#endif
