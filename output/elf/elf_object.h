/* SPDX-License-Identifier: MIT */
/*
 * An ELF file that describes code which is in no file: symbols at absolute addresses, and .debug_frame. It holds no code itself;
 * its sections say where the code is. For debuggers (gdb's add-symbol-file).
 */
#ifndef DP_OUTPUT_ELF_OBJECT_H
#define DP_OUTPUT_ELF_OBJECT_H

#include "base/buf.h"
#include "trampoline/code/frames.h"

struct dp_object; /* opaque */
struct dp_error *dp_object_create(struct dp_object **ret) DP_MUST_CHECK;
struct dp_object *dp_object_destroy(struct dp_object *o);

/* Running out of memory in any of these shows in dp_object_finish(). */
void dp_object_code(struct dp_object *o, uint64_t start, uint64_t size); /* before the symbols in it */
void dp_object_symbol(struct dp_object *o, uint64_t addr, uint64_t size, const char *name);
/*
 * Rows as a frame of its own, whose caller is the program's function at the original instruction, entered by nothing. Unwinders
 * look one byte in front of a return address, so that is what the caller's pc is said to be: one byte behind where the
 * instruction starts.
 */
void dp_object_frames(struct dp_object *o, const struct dp_frame_rows *rows);
/* Functions and .debug_frame of an ELF file that was linked to address 0 and is loaded at `at`; " [suffix]" is added to the
 * names. */
void dp_object_copy(struct dp_object *o, const void *elf, size_t n, uint64_t at, const char *suffix);

/* The whole file, appended to `ret`. */
struct dp_error *dp_object_finish(struct dp_object *o, struct dp_buf *ret) DP_MUST_CHECK;

#endif
