/* SPDX-License-Identifier: MIT */
/* What the arguments of system calls point to, as text. */
#ifndef DP_OUTPUT_CALLS_DATA_H
#define DP_OUTPUT_CALLS_DATA_H

#include "base/buf.h"
#include "probes/point/syscalls.h"

struct dp_call_memory {
	const uint8_t *bytes;
	size_t n;             /* recorded */
	uint64_t count;       /* elements that there are */
	bool list;            /* shown as a list, in brackets */
	const uint8_t *first; /* of several buffers: what the first has, or NULL */
	size_t nfirst;
	uint64_t used; /* so many bytes of them all, at most */
};
/* False, and appends nothing, if it is not known what is there or too little is recorded. */
bool dp_put_call_memory(struct dp_buf *b, const struct dp_call_word *means, const struct dp_call_memory *m);
/* A number that means `means`, a set of names or one of the words of structs.def. False if that says nothing about it. */
bool dp_put_call_meaning(struct dp_buf *b, const struct dp_call_word *means, uint64_t v);
/* The same bytes between quotes as C writes them, with octal numbers; at most 32. `more`: there are others after them. */
void dp_put_call_text(struct dp_buf *b, const uint8_t *bytes, size_t n, bool more);

#endif
