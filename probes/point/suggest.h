/* SPDX-License-Identifier: MIT */
/* "Did you mean": names similar to a mistyped one, by edit distance with transpositions, with bounded work. */
#ifndef DP_PROBES_POINT_SUGGEST_H
#define DP_PROBES_POINT_SUGGEST_H

#include "base/buf.h"

#define DP_SUGGESTIONS 5

struct dp_suggestion {
	const char *name; /* owned by the caller, must stay valid */
	size_t len;
	const char *within; /* printed before the name, with '!'; or NULL */
	unsigned distance;
};

struct dp_suggest {
	const char *wanted;
	size_t len;
	const char *within; /* of the names that are offered next: their module, or NULL */
	unsigned limit;     /* maximal distance of a suggestion */
	uint64_t work;
	struct dp_suggestion best[DP_SUGGESTIONS];
	size_t n;
};

void dp_suggest_init(struct dp_suggest *s, const char *wanted, size_t len);
void dp_suggest_offer(struct dp_suggest *s, const char *name, size_t len);
/* The same for a name of which only a part may have been typed: process_request for ngx_http_process_request. */
void dp_suggest_offer_part(struct dp_suggest *s, const char *name, size_t len);
/* Appends "; did you mean A, B or C?", or nothing. */
void dp_suggest_print(const struct dp_suggest *s, struct dp_buf *to);

#endif
