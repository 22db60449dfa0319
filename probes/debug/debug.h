/* SPDX-License-Identifier: MIT */
/*
 * Access to debug information (DWARF), read by libdw. It is searched where debuggers search: in the file; by build-id in
 * /usr/lib/debug/.build-id; by .gnu_debuglink; both below the target's root and in our own file system; from debuginfod if the
 * user has set DEBUGINFOD_URLS. A separate file must have the module's build-id or, without one, the link's checksum. Files of
 * dwz (.gnu_debugaltlink) and .dwo files (-gsplit-dwarf) are opened with it.
 *
 * Addresses in it are those of the file it was made for: add `bias` for addresses in the target. Files may be damaged: libdw
 * checks what it reads; code that walks a tree must bound depth and number of steps (DP_DEBUG_MAX_DEPTH).
 */
#ifndef DP_PROBES_DEBUG_DEBUG_H
#define DP_PROBES_DEBUG_DEBUG_H

#include "probes/image/image.h"

#include <elfutils/libdw.h>

#define DP_DEBUG_MAX_DEPTH 256u /* of nested entries; deeper ones are skipped */

struct dp_debug {
	Dwarf *dwarf;
	int64_t bias;                 /* address in the target = address in the debug information + bias */
	const char *path;             /* of the file that contains it, for messages */
	struct dp_debug_state *state; /* private: shared by all modules of the file */
};

/*
 * The debug information of `m`, opened on the first call and owned by `m`. DP_TAG_NO_DEBUG_INFO if there is none: the message
 * says where it was searched and what to install. The result is remembered.
 */
struct dp_error *dp_module_debug(struct dp_module *m, struct dp_debug **ret) DP_MUST_CHECK;
/* The first .dwo file that a unit needs and that is missing, or NULL; set while units are walked. */
const char *dp_debug_missing_dwo(const struct dp_debug *debug);
/* True if it was opened already. Does no I/O. */
bool dp_module_debug_opened(const struct dp_module *m);

/*
 * Walks the units: start with *cursor NULL. `ret` is the unit's entry with the full content: for -gsplit-dwarf the one in the
 * .dwo file, or the skeleton if that file is missing. Skips type units. False at the end.
 */
bool dp_debug_next_unit(struct dp_debug *debug, Dwarf_CU **cursor, Dwarf_Die *ret);
/* The unit whose code contains `pc` (an address in the debug information). Works without .debug_aranges, which clang omits. */
bool dp_debug_unit_at(struct dp_debug *debug, uint64_t pc, Dwarf_Die *ret);
/*
 * Some names that a unit does not have, of the unit that was asked last: a search walks all of its entries, and probes of a
 * pattern search the same names in a unit of thousands of functions.
 */
bool dp_debug_lacks(const struct dp_debug *debug, const Dwarf_Die *unit, const char *name);
void dp_debug_note_lack(struct dp_debug *debug, const Dwarf_Die *unit, const char *name);
/* The subprograms and inlined subroutines around `pc`, innermost first, at most `max`. */
size_t dp_debug_scopes_at(struct dp_debug *debug, uint64_t pc, Dwarf_Die *scopes, size_t max);

/* The source line of the instruction at `pc`. The path is as the compiler got it. */
bool dp_debug_line_at(struct dp_debug *debug, uint64_t pc, const char **path, int *line);

/* True if it may contain that name or file. Searches its text without parsing. */
bool dp_debug_mentions(struct dp_debug *debug, const char *word);

/* The file in which the entry is declared, or NULL. (libdw's own dwarf_decl_file() may abort on split units.) */
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
