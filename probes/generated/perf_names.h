/* SPDX-License-Identifier: MIT */
/*
 * The names of generated code, by address. In a perf map, a line is START SIZE NAME, both numbers hexadecimal; the name is the
 * rest of the line. Later lines count: a compiler uses the memory of dropped code again. The text is untrusted: other lines are
 * ignored.
 */
#ifndef DP_PROBES_GENERATED_PERF_NAMES_H
#define DP_PROBES_GENERATED_PERF_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dp_perf_name {
	uint64_t start, size;
	const char *name; /* valid until the next line is added */
};

#define DP_PERF_NAMES_MAX (1u << 20)  /* lines, */
#define DP_PERF_BYTES_MAX (64u << 20) /* and bytes of names that are kept; further ones are ignored */
#define DP_PERF_NAME_MAX  1000u       /* bytes; longer names are cut */

struct dp_perf_names;
struct dp_perf_names *dp_perf_names_create(void); /* NULL: out of memory */
struct dp_perf_names *dp_perf_names_destroy(struct dp_perf_names *p);
/* Adds the complete lines of text[0..n). Returns how many bytes they have: what follows the last newline is not used. */
size_t dp_perf_names_add(struct dp_perf_names *p, const char *text, size_t n);
/* Adds one. A name of no bytes, or one with a zero byte, is ignored. */
void dp_perf_names_put(struct dp_perf_names *p, uint64_t start, uint64_t size, const char *name, size_t n);
bool dp_perf_names_at(struct dp_perf_names *p, uint64_t addr, struct dp_perf_name *ret);
/* The number of names, of which each has another start. */
size_t dp_perf_names_count(struct dp_perf_names *p);

#endif
