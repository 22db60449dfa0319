/* SPDX-License-Identifier: MIT */
/*
 * Flame graphs: stacks with weights become a tree, and the tree one file, which a browser shows and which needs nothing else.
 * The file's size does not grow with the number of stacks: frames that no screen could show are left out, and counted.
 */
#ifndef DP_OUTPUT_FLAME_FLAME_H
#define DP_OUTPUT_FLAME_FLAME_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct dp_flame; /* opaque */
struct dp_error *dp_flame_create(struct dp_flame **ret) DP_MUST_CHECK;
struct dp_flame *dp_flame_destroy(struct dp_flame *f);
/* A line of folded stacks without its newline: "main;f;g 12", outermost first. False: it is none; counted in `skipped`. */
bool dp_flame_line(struct dp_flame *f, const char *line, size_t n);
/* All lines of a stream. DP_TAG_BAD_FOLDED: not one is a stack. */
struct dp_error *dp_flame_read(struct dp_flame *f, FILE *from, const char *name) DP_MUST_CHECK;

struct dp_flame_stats {
	uint64_t stacks;  /* lines taken */
	uint64_t skipped; /* lines that are no folded stacks */
	uint64_t narrow;  /* frames narrower than a tenth of a pixel, or too deep: left out by the last dp_flame_write() */
	double total;     /* of all weights */
};
void dp_flame_stats(const struct dp_flame *f, struct dp_flame_stats *ret);

struct dp_flame_shown {
	const char *title;
	const char *unit; /* "hits"; "ns" is shown as time */
	bool svg;         /* else HTML */
};
struct dp_error *dp_flame_write(struct dp_flame *f, const struct dp_flame_shown *shown, FILE *to) DP_MUST_CHECK;
/* By the name's end: .svg, .html or .htm. DP_TAG_USAGE for others. */
struct dp_error *dp_flame_kind(const char *path, bool *svg) DP_MUST_CHECK;

#endif
