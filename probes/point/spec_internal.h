/* SPDX-License-Identifier: MIT */
/* A probe point's text while it is taken apart. */
#ifndef DP_PROBES_SPEC_INTERNAL_H
#define DP_PROBES_SPEC_INTERNAL_H

#include "probes/probes.h"

struct dp_spec_part { /* of a probe point's text: [at, end) */
	const char *text;
	size_t at, end;
};

/* The text, and below it a caret under byte `at`. */
struct dp_error *dp_spec_wrong(const char *text, size_t at, const char *why) DP_MUST_CHECK;
/*
 * spec_source.c: takes a line, a function of a file, or a marker out of `p`. *taken is false where it is none of these; `spec` is
 * as it was then.
 */
struct dp_error *dp_spec_source(struct dp_spec_part p, struct dp_spec *spec, bool *taken) DP_MUST_CHECK;
/*
 * syscall:NAME, with :entry or :exit behind it; `bare`: without the word in front. *taken is false where the word is missing.
 */
struct dp_error *dp_spec_call(struct dp_spec_part p, bool bare, struct dp_spec *spec, bool *taken) DP_MUST_CHECK;
/* PROVIDER:MARKER, all of `p`. */
struct dp_error *dp_spec_marker(struct dp_spec_part p, struct dp_spec *spec) DP_MUST_CHECK;

#endif
