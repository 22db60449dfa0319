/* SPDX-License-Identifier: MIT */
/*
 * Source lines of addresses, for people. Reading debug information takes long, and whoever drains rings must not wait for it: a
 * thread of its own reads, with files of its own, because libdw's handles must not be shared by threads. Addresses are asked for,
 * and later found to be answered. Each address of a file is looked up once. One thread may ask.
 */
#ifndef DP_PROBES_POINT_SOURCE_SOURCE_LINES_H
#define DP_PROBES_POINT_SOURCE_SOURCE_LINES_H

#include "probes/image/image.h"

struct dp_source_frame {
	const char *function; /* of an inlined copy, as people read it; NULL: the function whose code it is */
	const char *file;     /* its path as the compiler got it */
	int line;
};
struct dp_source { /* innermost first; the last one is the function itself. n 0: nothing is known */
	const struct dp_source_frame *frame;
	size_t n;
};

struct dp_source_lines;                               /* opaque */
struct dp_source_asked;                               /* opaque: an address; owned by the lines */
/* `hurry`: a descriptor that ends the last wait when it becomes readable, or -1. NULL: out of memory. */
struct dp_source_lines *dp_source_lines_create(int hurry);
/* Does not wait for a lookup that takes long. Accepts NULL. */
struct dp_source_lines *dp_source_lines_destroy(struct dp_source_lines *lines);

struct dp_source_at { /* an address of a file, as in its program headers */
	const char *path, *root, *build_id;
	uint64_t inode, vaddr;
};
/* `exact`: not a return address, for which the call before it is meant. False: the code is in no file. */
bool dp_source_at(struct dp_image *image, uint64_t pc, bool exact, struct dp_source_at *ret);
/* Never waits. NULL: `lines` is NULL, or there is no room for more. */
const struct dp_source_asked *dp_source_lines_ask(struct dp_source_lines *lines, const struct dp_source_at *at);
/* Has it been looked up? Also true for NULL. */
bool dp_source_is_known(const struct dp_source_asked *asked);
/* {0} for NULL, and as long as it is not known. */
struct dp_source dp_source_of(const struct dp_source_asked *asked);
/* Waits until everything that was asked for is known, but no longer than that. */
void dp_source_lines_wait(struct dp_source_lines *lines, uint64_t ns);
/*
 * The wait at the end of a run: until everything is known, but no longer than two minutes (reading the debug information of a
 * large file on a busy machine takes seconds), and only until `hurry` becomes readable.
 */
void dp_source_lines_finish(struct dp_source_lines *lines);
/* Did such a wait end too early? */
bool dp_source_lines_missed(const struct dp_source_lines *lines);

#endif
