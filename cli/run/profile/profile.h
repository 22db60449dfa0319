/* SPDX-License-Identifier: MIT */
/* --profile HZ: where the threads of a process spend their CPU time, by samples of their stacks. Nothing in the process is
 * touched. */
#ifndef DP_CLI_PROFILE_H
#define DP_CLI_PROFILE_H

#include "cli/run/outputs.h"

/* Runs it; the exit status. Errors are printed. */
int dp_profile(const struct dp_options *options);

/* ---- profile_images.c: what code was mapped when -------------------------------------------------------------------------- */

struct dp_stacks;
enum { DP_IMAGES_MAX = 16 };
#define DP_IMAGES_NONE UINT32_MAX

struct dp_mapped {
	struct dp_image *image;
	uint8_t *unwind;
	uint64_t since_ns;
};
struct dp_images { /* the last ones, by their numbers; the first is 0 */
	struct dp_mapped of[DP_IMAGES_MAX];
	struct dp_mapped none; /* nothing is known */
	uint32_t n;
};
struct dp_error *dp_images_init(struct dp_images *s) DP_MUST_CHECK;
void dp_images_fini(struct dp_images *s);
/* Takes `m`, its image too. `stacks` (or NULL) are told of the image that has to go for it. */
void dp_images_add(struct dp_images *s, struct dp_mapped m, struct dp_stacks *stacks);
/* What was mapped then; DP_IMAGES_NONE if that is not known. */
const struct dp_mapped *dp_images_at(const struct dp_images *s, uint64_t ns, uint32_t *number);
struct dp_image *dp_images_get(const struct dp_images *s, uint32_t number);
/* Is the same code there? */
bool dp_images_agree(const struct dp_image *a, const struct dp_image *b, uint64_t addr);
/* What the function at `pc` is known by, wherever it is mapped. */
uint64_t dp_images_function(const struct dp_images *s, uint32_t number, uint64_t pc, bool exact);

/* ---- profile_table.c: how often each stack was seen ------------------------------------------------------------------------ */

struct dp_error *dp_stacks_create(struct dp_stacks **ret) DP_MUST_CHECK;
struct dp_stack_seen {
	const uint64_t *pc;
	size_t n;
	uint32_t image; /* its number */
};
/* False: there is no room for another stack. */
bool dp_stacks_count(struct dp_stacks *s, const struct dp_stack_seen *seen);
/* Image `old` goes: its stacks are `number`'s from now on, where that has the same code; the others' names are lost. */
void dp_stacks_retire(struct dp_stacks *s, uint32_t old, const struct dp_image *was, uint32_t number, const struct dp_image *is);
/* Samples whose names were lost so. */
uint64_t dp_stacks_unnamed(const struct dp_stacks *s);
/* As the options say: a table, folded stacks, or JSON. */
struct dp_stacks_view {
	const struct dp_options *options;
	const struct dp_images *images;
	pid_t pid;
	double seconds;
};
struct dp_error *dp_stacks_show(const struct dp_stacks *s, const struct dp_stacks_view *v, FILE *to) DP_MUST_CHECK;
struct dp_stacks *dp_stacks_destroy(struct dp_stacks *s);

#endif
