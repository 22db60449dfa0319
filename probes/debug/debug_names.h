/* SPDX-License-Identifier: MIT */
/*
 * Which units of debug information may hold an entry of a name, found by looking at its bytes rather than by parsing: a name is
 * written out in its unit, or is there as the offset of a string. What cannot be told that way (split units, packed sections) may
 * hold any name.
 */
#ifndef DP_PROBES_DEBUG_NAMES_H
#define DP_PROBES_DEBUG_NAMES_H

#include "probes/debug/debug.h"

struct dp_debug_unit {
	Dwarf_Die die;              /* of the unit, with the whole content */
	const uint8_t *start, *end; /* its bytes; NULL: they are elsewhere */
	bool alt;                   /* of the file that dwz made */
	bool marked, walked;
};
struct dp_debug_units {
	struct dp_debug_unit *unit;
	size_t n, capacity, next;
	struct dp_debug *debug;
	bool refers; /* entries of a unit refer to those of others, so their names may be elsewhere */
};

/* All units, those of the alternate file behind the others; none is marked. False without memory. */
bool dp_debug_units_load(struct dp_debug *debug, struct dp_debug_units *ret);
/* Behind all of them the units of -fdebug-types-section, of one type each. False without memory. */
bool dp_debug_units_add_types(struct dp_debug_units *units);
void dp_debug_units_fini(struct dp_debug_units *units);
/*
 * Marks those that may hold an entry whose name is `word`, or begins with it and goes on with what is no part of an identifier;
 * an entry that has the name of another unit's entry does not count. A NULL word: all of them.
 */
void dp_debug_units_mark_name(struct dp_debug_units *units, const char *word);
/* The word to look for: the last part of ns::name, without a template's arguments; NULL where that is not sure. */
struct dp_debug_word {
	char text[128];
};
const char *dp_debug_word_of(const char *name, struct dp_debug_word *buf);
/* Marks those whose line tables may have a file of that name (the last part of a path). */
void dp_debug_units_mark_file(struct dp_debug_units *units, const char *name);
/* Marks those that hold one of the words: offsets of entries that they may refer to. The words are sorted. */
void dp_debug_units_mark_words(struct dp_debug_units *units, uint32_t *word, size_t n);
/*
 * The next marked unit of the file itself that has not been walked, which it is then. `alt`: of both files. NULL at the end.
 */
struct dp_debug_unit *dp_debug_units_next(struct dp_debug_units *units, bool alt);

#endif
