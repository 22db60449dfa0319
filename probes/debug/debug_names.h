/* SPDX-License-Identifier: MIT */
/*
 * Finds units that may contain an entry with a name, without parsing: searches their bytes for the name itself or for the offset
 * of a string with that name. Units that cannot be searched (split units, compressed sections) always count.
 */
#ifndef DP_PROBES_DEBUG_DEBUG_NAMES_H
#define DP_PROBES_DEBUG_DEBUG_NAMES_H

#include "probes/debug/debug.h"

struct dp_debug_unit {
	Dwarf_Die die;              /* the unit's entry, with the full content */
	const uint8_t *start, *end; /* its bytes; NULL if they are in another file */
	bool alt;                   /* from the dwz file */
	bool marked, walked;
};
struct dp_debug_units {
	struct dp_debug_unit *unit;
	size_t n, capacity, next;
	struct dp_debug *debug;
	bool refers; /* entries refer to entries of other units, so their names may be there */
};

/* Loads all units, those of the dwz file last; none is marked. False when out of memory. */
bool dp_debug_units_load(struct dp_debug *debug, struct dp_debug_units *ret);
/* Appends the units of -fdebug-types-section, which have one type each. False when out of memory. */
bool dp_debug_units_add_types(struct dp_debug_units *units);
void dp_debug_units_fini(struct dp_debug_units *units);
/*
 * Marks units that may have an entry with the name `word`, or with `word` followed by a character that is not part of an
 * identifier. Entries that take their name from another unit do not count. NULL marks all units.
 */
void dp_debug_units_mark_name(struct dp_debug_units *units, const char *word);
/* The word to search for: the last part of ns::name, without template arguments. NULL if there is no safe word. */
struct dp_debug_word {
	char text[128];
};
const char *dp_debug_word_of(const char *name, struct dp_debug_word *buf);
/* Marks units whose line tables may have a file of that name (the last part of a path). */
void dp_debug_units_mark_file(struct dp_debug_units *units, const char *name);
/* Marks units that contain one of the words: offsets of entries to which they may refer. Sorts `word`. */
void dp_debug_units_mark_words(struct dp_debug_units *units, uint32_t *word, size_t n);
/*
 * Returns the next marked unit that was not walked, and sets it to walked. `alt`: includes the dwz file. NULL at the end.
 */
struct dp_debug_unit *dp_debug_units_next(struct dp_debug_units *units, bool alt);

#endif
