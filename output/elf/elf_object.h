/* SPDX-License-Identifier: MIT */
/*
 * Makes an ELF file that describes code which is in no file: symbols at absolute addresses, and .debug_frame. It contains no
 * code; its sections say where the code is. For debuggers (gdb's add-symbol-file).
 */
#ifndef DP_OUTPUT_ELF_ELF_OBJECT_H
#define DP_OUTPUT_ELF_ELF_OBJECT_H

#include "base/buf.h"
#include "trampoline/code/frames.h"

struct dp_elf_object; /* opaque */
struct dp_error *dp_object_create(struct dp_elf_object **ret) DP_MUST_CHECK;
struct dp_elf_object *dp_object_destroy(struct dp_elf_object *o);

/* If one of these runs out of memory, dp_object_finish() fails. */
void dp_object_code(struct dp_elf_object *o, uint64_t start, uint64_t size); /* before the symbols in it */
void dp_object_symbol(struct dp_elf_object *o, uint64_t addr, uint64_t size, const char *name);
/*
 * Adds rows as a frame of its own. Its caller is the program's function at the original instruction, although no call entered it.
 * Unwinders look one byte before a return address, so the caller's pc is given as one byte after the start of the instruction.
 */
void dp_object_frames(struct dp_elf_object *o, const struct dp_frame_rows *rows);
/* Adds functions and .debug_frame of an ELF file linked to address 0 and loaded at `at`; names get " [suffix]". */
void dp_object_copy(struct dp_elf_object *o, const void *elf, size_t n, uint64_t at, const char *suffix);

/*
 * Adds lines to the section .dynprobe.sites, which is for scripts: "site ADDRESS LENGTH", the bytes of a jump and those that it
 * relies on; "moved ADDRESS COPY", an instruction within them that runs at COPY instead.
 */
void dp_object_site(struct dp_elf_object *o, uint64_t addr, uint64_t len);
void dp_object_moved(struct dp_elf_object *o, uint64_t addr, uint64_t copy);

/* Appends the whole file to `ret`. */
struct dp_error *dp_object_finish(struct dp_elf_object *o, struct dp_buf *ret) DP_MUST_CHECK;

#endif
