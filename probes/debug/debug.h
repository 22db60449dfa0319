/* SPDX-License-Identifier: MIT */
/*
 * The one door to debug information (DWARF), read by libdw. It is found where debuggers find it: in the file; by build-id in
 * /usr/lib/debug/.build-id; by .gnu_debuglink; both below the target's root and in our own view; from debuginfod, where the user
 * has set DEBUGINFOD_URLS. A separate file is used only if its build-id is the module's (without one: if the link's checksum
 * fits). What dwz moved to an alternate file (.gnu_debugaltlink) and what -gsplit-dwarf left in .dwo files is opened with it.
 *
 * Addresses inside are those of the file the information was made for: in the target they are `bias` higher. Files may be
 * damaged: libdw checks what it reads, and whoever walks a tree must bound depth and number of steps (DP_DEBUG_MAX_DEPTH).
 */
#ifndef DP_PROBES_DEBUG_H
#define DP_PROBES_DEBUG_H

#include "probes/probes.h"

#include <elfutils/libdw.h>

#define DP_DEBUG_MAX_DEPTH 256u /* of nested entries; deeper ones are passed over */

struct dp_debug {
	Dwarf *dwarf;
	int64_t bias;            /* address in the target = address in the debug information + bias */
	const char *path;        /* of the file that it is in, for messages */
	const char *missing_dwo; /* a .dwo file that a unit needs and that was not found, or NULL; known once units were walked */
};

/*
 * The debug information of `m`, opened on the first call and owned by `m`. A module without any is DP_TAG_NO_DEBUG_INFO, which
 * says where was looked and what to install; the answer is remembered.
 */
struct dp_error *dp_module_debug(struct dp_module *m, struct dp_debug **ret) DP_MUST_CHECK;
/* Has it been opened already? Asks nothing of the disk. */
bool dp_module_debug_opened(const struct dp_module *m);

/*
 * One unit after the other: start with *cursor NULL. `ret` is the unit's entry with the whole content: for -gsplit-dwarf the one
 * in the .dwo file, or the skeleton where that is missing. Type units are passed over. False at the end.
 */
bool dp_debug_next_unit(struct dp_debug *debug, Dwarf_CU **cursor, Dwarf_Die *ret);
/* The unit whose code is at the address `pc` of the debug information; not by .debug_aranges, which clang does not write. */
bool dp_debug_unit_at(struct dp_debug *debug, uint64_t pc, Dwarf_Die *ret);
/* The innermost subprogram or inlined subroutine around `pc`, then those around it: at most `max`, innermost first. */
size_t dp_debug_scopes_at(struct dp_debug *debug, uint64_t pc, Dwarf_Die *scopes, size_t max);

/* The line that the instruction at `pc` belongs to; the path is as the compiler was given it. */
bool dp_debug_line_at(struct dp_debug *debug, uint64_t pc, const char **path, int *line);

/* The file that the entry says it is declared in, or NULL. (libdw's own dwarf_decl_file() may abort on split units.) */
const char *dp_debug_decl_file(Dwarf_Die *die);

static inline uint64_t dp_debug_pc(const struct dp_debug *debug, dp_addr addr)
{
	return addr.v - (uint64_t)debug->bias;
}

static inline dp_addr dp_debug_addr(const struct dp_debug *debug, uint64_t pc)
{
	return dp_addr_of(pc + (uint64_t)debug->bias);
}

#endif
