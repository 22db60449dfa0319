/* SPDX-License-Identifier: MIT */
/* The source files of a module, and the lines of one that have code: what a user may name. */
#ifndef DP_PROBES_POINT_SOURCE_SOURCE_NAMES_H
#define DP_PROBES_POINT_SOURCE_SOURCE_NAMES_H

#include "probes/debug/debug.h"

/*
 * The main file of each unit, its path as the compiler got it; not what it includes. The paths belong to the debug information.
 * Stops when `each` returns false.
 */
void dp_source_files_each(struct dp_debug *debug, bool (*each)(const char *path, void *data), void *data);
/* The lines of a file, ascending, each once. `file`: its path, or its last parts. Nothing when out of memory. */
void dp_source_code_lines(struct dp_debug *debug, const char *file, bool (*each)(uint32_t line, void *data), void *data);

/* The module's debug information is in its own file. That of a distribution's libraries is not, and takes long to read. */
bool dp_source_is_near(const struct dp_module *m);

#endif
