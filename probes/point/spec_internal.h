/* SPDX-License-Identifier: MIT */
/* Parsing of a spec, shared by spec.c and spec_source.c. */
#ifndef DP_PROBES_POINT_SPEC_INTERNAL_H
#define DP_PROBES_POINT_SPEC_INTERNAL_H

#include "probes/point/spec.h"

struct dp_spec_part { /* a part [at, end) of the spec's text */
	const char *text;
	size_t at, end;
};

/* DP_TAG_SYNTAX: `why`, then the text with a caret below byte `at`. */
struct dp_error *dp_spec_wrong(const char *text, size_t at, const char *why) DP_MUST_CHECK;
/*
 * spec_source.c: parses a line, a function of a file, or a marker. *taken is false, and `spec` unchanged, if `p` is none of
 * these.
 */
struct dp_error *dp_spec_source(struct dp_spec_part p, struct dp_spec *spec, bool *taken) DP_MUST_CHECK;
/*
 * Parses syscall:NAME, optionally with :entry or :exit; `bare`: without "syscall:". *taken is false if the word is missing.
 */
struct dp_error *dp_spec_call(struct dp_spec_part p, bool bare, struct dp_spec *spec, bool *taken) DP_MUST_CHECK;
/* Parses all of `p` as PROVIDER:MARKER. */
struct dp_error *dp_spec_marker(struct dp_spec_part p, struct dp_spec *spec) DP_MUST_CHECK;

#endif
