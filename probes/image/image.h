/* SPDX-License-Identifier: MIT */
/* The image of a target: its mappings, and its modules. */
#ifndef DP_PROBES_IMAGE_IMAGE_H
#define DP_PROBES_IMAGE_IMAGE_H

#include "base/addr.h"
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct dp_map { /* one line of /proc/PID/maps */
	dp_addr start, end;
	uint64_t offset; /* in the file, bytes */
	uint64_t inode;
	uint32_t dev_major, dev_minor;
	bool read, write, exec, shared;
	char *path; /* as the kernel prints it, with " (deleted)"; "" if anonymous */
};

struct dp_module; /* opaque: an ELF file mapped in the target (image/module.h), loaded lazily */
struct dp_image;  /* opaque: all mappings and modules of one target */

/*
 * `maps` is the text of /proc/PID/maps. Files are opened below `root` ("/proc/PID/root", or "" for our own file system). If the
 * path does not lead to the mapped inode and `pid` is not 0, /proc/PID/map_files is tried. dp_image_set_vdso() adds the vdso as a
 * module; it copies the bytes.
 */
struct dp_error *dp_image_create(const char *maps, const char *root, int pid, struct dp_image **ret) DP_MUST_CHECK;
/*
 * The image of an executable or library that is not running, as if it were loaded alone: at its own address if it has one, else
 * at a typical one. DP_TAG_BAD_ELF on failure.
 */
struct dp_error *dp_image_from_file(const char *path, struct dp_image **ret) DP_MUST_CHECK;
#define DP_FILE_BASE_PROGRAM 0x555555554000ULL /* where the kernel puts a PIE without ASLR */
#define DP_FILE_BASE_LIBRARY 0x7f5555554000ULL
struct dp_image *dp_image_destroy(struct dp_image *image);
/* Replaces the maps by newer ones of the same process. *ret is false, and nothing changes, if a module is not where it was. */
struct dp_error *dp_image_renew(struct dp_image *image, const char *maps, bool *ret) DP_MUST_CHECK;
/* Whether the latest image (see below) has all code of files in these newer maps of the process. */
struct dp_error *dp_image_knows_code(const struct dp_image *image, const char *maps, bool *ret) DP_MUST_CHECK;
/*
 * A newer image of the same process, which `image` owns from now on: dp_image_module_at() finds its modules, too, where `image`
 * and those added before have none. `image` gets a new serial number. dp_image_latest() is the newest one, or `image`.
 */
void dp_image_add_later(struct dp_image *image, struct dp_image *later);
struct dp_image *dp_image_latest(struct dp_image *image);
#define DP_IMAGES_LATER_MAX 256u /* of one image */
unsigned dp_image_nlater(const struct dp_image *image);
struct dp_error *dp_image_set_vdso(struct dp_image *image, const void *bytes, size_t size) DP_MUST_CHECK;

/* From 1; no other image has had it. */
uint64_t dp_image_serial(const struct dp_image *image);

struct dp_code_name {                             /* what a frame's address was called when its process ran */
	const char *symbol, *readable, *function; /* as dp_frame_describe() and dp_frame_function() write it */
	bool signal_return;                       /* the frame that called it was interrupted: its address is exact */
	bool begins_thread;                       /* nothing calls it */
};
struct dp_code_names { /* `exact`: not a return address. NULL: the name is not known */
	const struct dp_code_name *(*find)(uint64_t pc, bool exact, void *data);
	void *data;
};
/* For an image without a process: names that are taken before those of the files. */
void dp_image_set_names(struct dp_image *image, const struct dp_code_names *names);
const struct dp_code_name *dp_image_code_name(const struct dp_image *image, uint64_t pc, bool exact);

size_t dp_image_nmaps(const struct dp_image *image);
const struct dp_map *dp_image_map(const struct dp_image *image, size_t i); /* ascending addresses */
const struct dp_map *dp_image_map_at(const struct dp_image *image, dp_addr addr);

/* Start of the brk() heap, also before there is a heap; 0 if unknown (no process, no permission). */
uint64_t dp_image_heap_start(const struct dp_image *image);

size_t dp_image_nmodules(const struct dp_image *image);
struct dp_module *dp_image_module(const struct dp_image *image, size_t i); /* [0] is the executable */
/* The module whose mappings contain `addr`, or NULL. */
struct dp_module *dp_image_module_at(const struct dp_image *image, dp_addr addr);

const char *dp_module_path(const struct dp_module *m);
const char *dp_module_name(const struct dp_module *m); /* last part of the path */
/* The same for people: of an executable that was started by a link, the link's name. */
const char *dp_module_shown(const struct dp_module *m);
/*
 * Notes by which name the executable was started, where that is a link to its file: the first word of its arguments (servers write
 * their state after it, and a login shell has a dash before it), else comm. An image of a running process has done so itself.
 */
void dp_image_started_as(struct dp_image *image, const char *args, const char *comm);
int64_t dp_module_bias(const struct dp_module *m); /* address in the target = address in the file (p_vaddr) + bias */
/* The build-id note as hex digits, "" if there is none. Loads the file. */
const char *dp_module_build_id(struct dp_module *m);
/*
 * Reads the file's bytes for target addresses [addr, addr+n) of an executable segment, with text relocations applied. Used for
 * the DP-FOREIGN comparison and for planning. Cuts `n` at the segment's end. Fails with DP_TAG_NOT_CODE outside of executable
 * segments.
 */
struct dp_error *dp_module_text(struct dp_module *m, dp_addr addr, void *buf, size_t *n) DP_MUST_CHECK;
/* True if `map` has the file's code at `addr` but is no longer the file. Programs move text like this for huge pages. */
bool dp_module_moved(const struct dp_module *m, const struct dp_map *map, dp_addr addr);
/* Bounds in the target of the executable segment around `addr`: file-backed bytes only, not rounded to pages. */
bool dp_module_text_bounds(struct dp_module *m, dp_addr addr, dp_addr *start, dp_addr *end);
/*
 * The .eh_frame as mapped (from its first CIE, without .eh_frame_hdr): address in the target and the file's bytes, which the
 * module owns. False if there is none. Zero terminators may be inside; without section headers `size` reaches to the segment's
 * end.
 */
bool dp_module_eh_frame(struct dp_module *m, dp_addr *addr, const uint8_t **bytes, size_t *size);

/* One PT_LOAD segment's file bytes and address in the target (the layout with which trampoline/ proves windows). */
size_t dp_module_nsegments(struct dp_module *m);
bool dp_module_segment(struct dp_module *m, size_t i, dp_addr *addr, const uint8_t **bytes, size_t *n, bool *exec);

struct dp_function { /* a function, from a symbol or from .eh_frame */
	dp_addr start;
	uint64_t size;    /* bytes, 0 if unknown */
	const char *name; /* owned by the module; "" if only .eh_frame knows the function */
	struct dp_module *module;
};
/* The name as in C++ and Rust source, without parameters; owned by the module. f->name if it is not mangled. */
const char *dp_function_readable(const struct dp_function *f);

#endif
