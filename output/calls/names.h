/* SPDX-License-Identifier: MIT */
/* Names of the numbers in system calls, as the system's headers have them. */
#ifndef DP_OUTPUT_CALLS_NAMES_H
#define DP_OUTPUT_CALLS_NAMES_H

#include "base/buf.h"

struct dp_call_name {
	uint64_t value;
	const char *name;
};
struct dp_call_names { /* scripts/call-names.sh makes them from names.list */
	const char *set;
	const struct dp_call_name *item;
	size_t n;
	uint64_t mask; /* the bits that are one of the names; the others are flags */
};
extern const struct dp_call_names dp_call_names[];
extern const size_t dp_call_nnames;

/* A set by its name, which need not be terminated; NULL if there is none. */
const struct dp_call_names *dp_call_names_find(const char *set, size_t len);
/* O_RDWR|O_CREAT, with the unknown rest in hexadecimal. False, and appends nothing, if no part of it has a name. */
bool dp_put_call_names(struct dp_buf *b, const struct dp_call_names *names, uint64_t v);
/* The name of that value alone, or NULL. */
const char *dp_call_name_of(const struct dp_call_names *names, uint64_t v);

#endif
