/* SPDX-License-Identifier: MIT */
/*
 * A system call as one line of C, as strace writes it: openat(AT_FDCWD, "/etc/passwd", O_RDONLY|O_CLOEXEC) = 3 <12.3us>. What its
 * entry and its exit say is combined; either may be missing.
 */
#ifndef DP_OUTPUT_CALLS_LINE_H
#define DP_OUTPUT_CALLS_LINE_H

#include "base/buf.h"
#include "output/calls/seen.h"

struct dp_call_line {
	const struct dp_call_seen *entry, *exit; /* either may be NULL */
	int32_t nr;                              /* or DP_CALL_ANY: not known */
	bool has_duration;
	uint64_t duration_ns;
};
/* "openat"; "syscall" if it is not known. */
void dp_put_call_name(struct dp_buf *b, const struct dp_call_line *line);
/* Arguments `from` to `to`, not included, with commas. */
void dp_put_call_args(struct dp_buf *b, const struct dp_call_line *line, unsigned from, unsigned to);
/* The first argument that only the exit knows: up to there an unfinished call is shown. */
unsigned dp_call_first_late(int32_t nr);
/* " = 3", " = -1 ENOENT (No such file or directory)", " = ?" */
void dp_put_call_result(struct dp_buf *b, const struct dp_call_line *line);
/* " <12.3us>", or nothing. */
void dp_put_call_duration(struct dp_buf *b, const struct dp_call_line *line);
/* ,"call":"openat","args_text":"...","result":3,"error":"ENOENT","duration_ns":12300: what is known of them. */
void dp_put_call_json(struct dp_buf *b, const struct dp_call_line *line);
/* The name of the result's error, or NULL. */
const char *dp_call_error(const struct dp_call_seen *exit);

#endif
