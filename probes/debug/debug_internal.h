/* SPDX-License-Identifier: MIT */
/* Inside of opened debug information. */
#ifndef DP_PROBES_DEBUG_INTERNAL_H
#define DP_PROBES_DEBUG_INTERNAL_H

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
	struct dp_elf *bytes; /* what `elf` reads from, where it is no file */
};

struct dp_debug_state {
	struct dp_debug open; /* what others see */
	struct dp_debug_file main, alt;
	Dwfl *dwfl; /* where libdw found the file itself: it owns main.dwarf then */
	char *path, *missing;
	struct dp_debug_range *range; /* ascending starts */
	size_t nranges, capacity;
	bool ranges_known, table_fails;
};

/* Opens for reading; false if there is no debug information in it. */
bool dp_debug_file_open(int fd, struct dp_debug_file *ret); /* takes the descriptor over */
bool dp_debug_file_open_kept(int fd, struct dp_debug_file *ret); /* or what is kept of it: debug_cache.h */
bool dp_debug_memory_open(const struct dp_elf *elf, struct dp_debug_file *ret);
void dp_debug_file_close(struct dp_debug_file *f);

/* debug_names.c: a section's bytes, none if it is not there; is some of it packed still? */
struct dp_span dp_debug_section(Dwarf *dwarf, const char *name);
bool dp_debug_is_packed(Dwarf *dwarf);
/* debug_alt.c: opens what dwz moved elsewhere. False where that is needed and not found; `name` is then what it is called. */
bool dp_debug_alt_open(struct dp_module *m, struct dp_debug_state *d, const char **name);
/* debug_fetch.c: asks debuginfod, where the user wants that. */
bool dp_debug_fetch(struct dp_module *m, struct dp_debug_state *d);

#endif
