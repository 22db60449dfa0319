/* SPDX-License-Identifier: MIT */
/*
 * The tree of calls below some functions, from the entries and returns of each thread in their order. A call is known by its
 * function and by the address of its return address. What is nearer to the end of the stack than that has been left (by longjmp
 * or an exception) and ends there. A function that ends by a tail jump is the caller of the one that it jumps to.
 */
#ifndef DP_OUTPUT_TREE_CALL_TREE_H
#define DP_OUTPUT_TREE_CALL_TREE_H

#include "base/error.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct dp_call_tree; /* opaque */
struct dp_call_function {
	const char *name;
	bool root; /* the tree begins with its calls; others count below a root only */
};
/* Borrows the functions. */
struct dp_error *dp_call_tree_create(const struct dp_call_function *function, size_t n, struct dp_call_tree **ret) DP_MUST_CHECK;
struct dp_call_tree *dp_call_tree_destroy(struct dp_call_tree *t);

struct dp_call_step { /* one entry or return */
	pid_t pid, tid;
	size_t function;
	bool enters;
	bool tails; /* the function ends by a jump to another, which then returns for it */
	uint64_t sp, ns;
};
void dp_call_tree_step(struct dp_call_tree *t, const struct dp_call_step *step);
/* Events were lost: the calls in progress are not known any more. */
void dp_call_tree_gap(struct dp_call_tree *t);

struct dp_call_counts {
	uint64_t open;    /* calls that have not returned: their time is not in the tree */
	uint64_t left;    /* ended without a return */
	uint64_t dropped; /* were in progress when events were lost */
	bool full;        /* the tree has all nodes that it may have: deeper calls are their callers' own time */
};
void dp_call_tree_counts(const struct dp_call_tree *t, struct dp_call_counts *ret);

/* Entries of a function below no root: of a call that was in progress when the probes were placed, or of none. */
uint64_t dp_call_tree_strays(const struct dp_call_tree *t, size_t function);

/* call_tree_shown.c */
struct dp_call_tree_how {
	bool by_function; /* a row for each function, by its own time, instead of the tree */
	size_t top;       /* rows of such; 0: all */
	bool final;       /* the run has ended */
	double seconds;   /* since its begin */
};
void dp_call_tree_text(const struct dp_call_tree *t, const struct dp_call_tree_how *how, FILE *to);
void dp_call_tree_json(const struct dp_call_tree *t, const struct dp_call_tree_how *how, FILE *to);
/* f;g;h NS: own times, for flame graphs. */
void dp_call_tree_folded(const struct dp_call_tree *t, FILE *to);

struct dp_call_node { /* calls on one path */
	size_t function;
	uint32_t parent, child, next; /* 0: none */
	uint64_t calls, total, below; /* below: time of the calls that it made */
};
/* [0] stands above the roots. */
size_t dp_call_tree_nodes(const struct dp_call_tree *t, const struct dp_call_node **ret, const struct dp_call_function **function,
                          size_t *nfunctions);

#endif
