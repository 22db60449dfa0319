/* SPDX-License-Identifier: MIT */
/* Small ELF files made by the compiler at test time, and images of them without a process. */
#ifndef DP_TESTS_PROBES_HELPER_ELF_H
#define DP_TESTS_PROBES_HELPER_ELF_H

#include "probes/probes.h"

/* A fresh directory below /tmp, removed when the test's process ends. */
const char *scratch(void);
/* Runs a shell command (printf-like) in scratch(); the test fails if the command does. */
void shell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Writes `text` to the file scratch()/name. */
void write_file(const char *name, const char *text);
/* The lines of /proc/PID/maps that a loader would produce for the file `path` at `base` (0 for non-PIE). */
char *maps_of(const char *path, uint64_t base);
/* An image of one file of scratch(), and of two. */
struct dp_image *image_of(const char *name, uint64_t base);
struct dp_image *image_of_two(const char *a, const char *b);
/* The image of the running test. */
struct dp_image *image_of_self(void);
/* The value that `nm` gives for a symbol of the file scratch()/name. */
uint64_t nm_value(const char *name, const char *symbol);
/* Resolves text to *ret; returns the error. */
struct dp_error *resolve(struct dp_image *image, const char *text, struct dp_site *ret);
/* Resolves text to an address; the test fails if it does not resolve. */
uint64_t address_of(struct dp_image *image, const char *text);
/* Resolving must fail with this tag and a message that contains `part`. */
void refused(struct dp_image *image, const char *text, enum dp_tag tag, const char *part);
/* Calls everything that reads the file, for damaged ones. */
void exercise(struct dp_image *image);

#endif
