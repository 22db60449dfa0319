/* SPDX-License-Identifier: MIT */
/* What an event says about its system call. */
#ifndef DP_OUTPUT_CALLS_SEEN_H
#define DP_OUTPUT_CALLS_SEEN_H

#include "output/output.h"

/* Which part of a call each field of a class is. */
struct dp_call_roles {
	uint8_t *of; /* for each field */
	bool whole;  /* it has all that a line is made of */
};
enum dp_call_role {
	DP_CALL_ROLE_NONE, /* no part of the line */
	DP_CALL_ROLE_NR,
	DP_CALL_ROLE_RESULT,
	DP_CALL_ROLE_DURATION,
	DP_CALL_ROLE_WORD, /* and the argument's number, as for the next three */
	DP_CALL_ROLE_DATA = DP_CALL_ROLE_WORD + DP_CALL_ARGS,
	DP_CALL_ROLE_FIRST = DP_CALL_ROLE_DATA + DP_CALL_ARGS,
	DP_CALL_ROLE_TEXT = DP_CALL_ROLE_FIRST + DP_CALL_ARGS,
};
bool dp_classes_have_calls(const struct dp_event_class *classes, size_t n);
/* False: out of memory. */
bool dp_call_roles_make(const struct dp_event_class *class, struct dp_call_roles *ret);
void dp_call_roles_fini(struct dp_call_roles *roles);

struct dp_call_bytes {
	const uint8_t *bytes; /* in the payload; NULL: not recorded, or not readable */
	size_t n;
};
struct dp_call_seen {
	int32_t nr; /* or DP_CALL_ANY */
	bool exit, has_result, has_duration;
	int64_t result;
	uint64_t duration_ns;
	bool has_word[DP_CALL_ARGS];
	uint64_t word[DP_CALL_ARGS];
	struct dp_call_bytes text[DP_CALL_ARGS], data[DP_CALL_ARGS], first[DP_CALL_ARGS];
	bool cut[DP_CALL_ARGS]; /* the text goes on */
};
void dp_call_see(const struct dp_event_class *class, const struct dp_call_roles *roles, const struct dp_decoder *d,
                 const struct dp_event *e, struct dp_call_seen *ret);

#endif
