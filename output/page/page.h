/* SPDX-License-Identifier: MIT */
/* Pages that need nothing else: a template with marks, and data in parts that a browser unpacks when it needs them. */
#ifndef DP_OUTPUT_PAGE_PAGE_H
#define DP_OUTPUT_PAGE_PAGE_H

#include "base/buf.h"
#include "base/error.h"

#include <stdio.h>

struct dp_page { /* being written: `at` is where its template goes on */
	const char *at, *end;
	FILE *to;
	bool failed;
};
/* Files of share/, embedded by cmake/dynprobe.cmake. */
struct dp_page_file {
	const char *start, *end;
};
/* Writes the template up to the mark, which is left out. */
void dp_page_until(struct dp_page *p, const char *mark);
void dp_page_put(struct dp_page *p, const struct dp_page_file *file);
/* Writes the rest of the template and flushes. */
struct dp_error *dp_page_end(struct dp_page *p) DP_MUST_CHECK;

/* Appends the bytes deflated and in base64, which can be no markup, and a newline. */
struct dp_error *dp_page_pack(const void *bytes, size_t n, struct dp_buf *ret) DP_MUST_CHECK;
/* The same, written to a stream. */
struct dp_error *dp_page_put_packed(FILE *to, const void *bytes, size_t n) DP_MUST_CHECK;

#endif
