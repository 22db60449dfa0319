/* SPDX-License-Identifier: MIT */
/* What a tree of calls does not show, and why: on standard error. */
#ifndef DP_CLI_TREE_CALLS_NOTES_H
#define DP_CLI_TREE_CALLS_NOTES_H

#include "output/tree/call_tree.h"

struct dp_calls_noted {
	const struct dp_call_tree *tree;
	const struct dp_call_function *function;
	const char *const *spec; /* of each function, as one would type it */
	size_t functions;
	uint64_t lost; /* events */
	bool quiet;    /* only what is missing in the tree */
};
void dp_calls_note(const struct dp_calls_noted *of);

#endif
