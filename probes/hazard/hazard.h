/* SPDX-License-Identifier: MIT */
/* What must not be probed, or not be counted on. */
#ifndef DP_PROBES_HAZARD_HAZARD_H
#define DP_PROBES_HAZARD_HAZARD_H

#include "probes/image/image.h"

/* True if `addr` is in the executable or a library it was linked against. Other modules may be unloaded at any time. */
bool dp_image_never_unloaded(struct dp_image *image, dp_addr addr);

/* The module that translates the code of all others, which is never executed itself; NULL: none is known. */
const struct dp_module *dp_image_translator(struct dp_image *image);

/* True if the module's code runs on stacks of a few KiB that are moved when they are full (Go). */
bool dp_module_small_stacks(struct dp_module *m);
/* True if %fs:-8 is a thread's current goroutine when that module is the executable: it has no other thread-local variables. */
bool dp_module_finds_goroutines(struct dp_module *m);
/* True if ld.so starts the program, but it is linked with no library: no C library makes its threads. */
bool dp_module_needs_none(struct dp_module *m);
/*
 * Landing pads: all target addresses at which an exception may continue, from the LSDAs that .eh_frame names. Ascending, owned by
 * the module. False if a table could not be parsed: then nothing is known about the module's pads.
 */
bool dp_module_landing_pads(struct dp_module *m, const uint64_t **pads, size_t *n);

/*
 * Restartable sequences, whose addresses the kernel knows, if the file has a section of their descriptors. Returns range number
 * `i`, which may be empty; false after the last one.
 */
bool dp_module_rseq(struct dp_module *m, size_t i, dp_addr *start, uint64_t *size);
/* The same for code whose addresses thread cancellation compares, if the file's own symbols name it. */
bool dp_module_cancellation(struct dp_module *m, size_t i, dp_addr *start, uint64_t *size);

#endif
