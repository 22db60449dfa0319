/* SPDX-License-Identifier: MIT */
#include "cli/tree/calls_notes.h"

#include <inttypes.h>
#include <stdio.h>

#define NAMED 3u /* functions of which something is said */
#define TRIED 5u /* callees that are offered */

/* The calls of a function, also below others, and whether their time is known: then `total` is not 0. */
static struct dp_call_node all_of(const struct dp_calls_noted *of, size_t function)
{
	struct dp_call_node sum = {0};
	const struct dp_call_node *node;
	const struct dp_call_function *names;
	size_t nnames;
	const size_t n = dp_call_tree_nodes(of->tree, &node, &names, &nnames);
	for (size_t i = 1; i < n; i++)
		if (node[i].function == function) {
			sum.calls += node[i].calls;
			sum.total += node[i].total;
		}
	return sum;
}

/* Functions that were entered, those that the root calls itself first: "; try what it calls: --calls 'w!step' (entered 12
 * times)". */
static void offer(const struct dp_calls_noted *of)
{
	unsigned said = 0;
	for (size_t i = 0; said < TRIED && i < of->functions; i++) {
		const uint64_t n = dp_call_tree_strays(of->tree, i);
		if (n)
			fprintf(stderr, "%s--calls '%s' (entered %" PRIu64 " time%s)",
			        said++ ? ", " : "; try what it calls: ", of->spec[i], n, n == 1 ? "" : "s");
	}
}

static void note_root(const struct dp_calls_noted *of, size_t i)
{
	const struct dp_call_node root = all_of(of, i);
	const char *name = of->function[i].name;
	if (root.calls && !root.total)
		fprintf(stderr,
		        "dynprobe: %s was entered %" PRIu64
		        " time%s and did not return while it was probed: its time is not known",
		        name, root.calls, root.calls == 1 ? "" : "s");
	else
		fprintf(stderr, "dynprobe: %s was not entered while it was probed: a call that had begun before is not measured",
		        name);
	if (!root.calls)
		offer(of);
	fprintf(stderr, "\n");
}

/* Roots without a time; of patterns (--self) only if none has one. */
static bool note_roots(const struct dp_calls_noted *of)
{
	unsigned roots = 0, silent = 0, said = 0;
	for (size_t i = 0; i < of->functions; i++) {
		roots += of->function[i].root;
		silent += of->function[i].root && !all_of(of, i).total;
	}
	for (size_t i = 0; (silent == roots || roots <= NAMED) && said < NAMED && i < of->functions; i++)
		if (of->function[i].root && !all_of(of, i).total) {
			note_root(of, i);
			said++;
		}
	return said;
}

void dp_calls_note(const struct dp_calls_noted *of)
{
	struct dp_call_counts n;
	dp_call_tree_counts(of->tree, &n);
	if ((of->quiet || !note_roots(of)) && n.open)
		fprintf(stderr, "dynprobe: %" PRIu64 " call%s not returned: the time is not counted\n", n.open,
		        n.open == 1 ? " has" : "s have");
	if (n.left)
		fprintf(stderr, "dynprobe: %" PRIu64 " calls ended without a return (longjmp, an exception, an unprobed jump)\n",
		        n.left);
	if (of->lost)
		fprintf(stderr,
		        "dynprobe: %" PRIu64 " events were lost, and %" PRIu64
		        " calls in progress with them: counts and times are too "
		        "small; --buffer-size 16M, --on-full block=10ms or fewer functions (-x) avoid it\n",
		        of->lost, n.dropped);
	if (n.full)
		fprintf(stderr, "dynprobe: the tree is at its limit: deeper calls are their callers' own time\n");
}
