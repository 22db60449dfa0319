/* SPDX-License-Identifier: MIT */
#include "cli/tree/calls_shown.h"

#include "injector/tracee/tracee.h"
#include "output/tree/call_tree.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct dp_calls_shown {
	const struct dp_options *options;
	const struct dp_trace_spec *trace;
	FILE *to;
	struct dp_call_tree *tree;
	struct dp_call_function *function;
	uint64_t lost, shown_ns;
};

static void name_functions(struct dp_calls_shown *c)
{
	for (size_t i = 0; i < c->trace->nprobes; i++) {
		const struct dp_probe *p = &c->trace->probe[i];
		const struct dp_typed *typed = &c->trace->typed[i];
		if (!typed->tree)
			continue;
		struct dp_call_function *f = &c->function[typed->tree - 1];
		f->name = p->shown ? p->shown : p->name;
		f->root |= typed->root;
	}
}

struct dp_error *dp_calls_open(const struct dp_options *options, const struct dp_trace_spec *trace, FILE *to,
                               struct dp_calls_shown **ret)
{
	*ret = NULL;
	if (!trace->asked.tree)
		return NULL;
	struct dp_calls_shown *c = *ret = calloc(1, sizeof(*c));
	if (!c || !(c->function = calloc(trace->nprobes + 1, sizeof(*c->function))))
		return dp_error_nomem();
	c->options = options;
	c->trace = trace;
	c->to = to;
	name_functions(c);
	c->shown_ns = dp_now_ns();
	return dp_call_tree_create(c->function, trace->nprobes, &c->tree);
}

void dp_calls_close(struct dp_calls_shown *c)
{
	if (!c)
		return;
	dp_call_tree_destroy(c->tree);
	free(c->function);
	free(c);
}

void dp_calls_batch(struct dp_calls_shown *c, const struct dp_event_batch *batch)
{
	struct dp_hits_item *item = batch->hits->item;
	for (size_t i = 0; i < batch->hits->n; i++) {
		struct dp_call_step step = {.pid = batch->pid, .tid = batch->hits->tid, .ns = item[i].ns};
		if (item[i].probe >= c->trace->nprobes)
			continue;
		const struct dp_typed *typed = &c->trace->typed[item[i].probe];
		item[i].damaged = item[i].len < sizeof(step.sp) || !typed->tree;
		if (item[i].damaged)
			continue;
		memcpy(&step.sp, item[i].payload, sizeof(step.sp));
		step.function = typed->tree - 1;
		step.enters = typed->tree_enters;
		step.tails = typed->tails;
		dp_call_tree_step(c->tree, &step);
	}
}

void dp_calls_lost(struct dp_calls_shown *c, uint64_t lost)
{
	if (!c || lost == c->lost)
		return;
	c->lost = lost;
	dp_call_tree_gap(c->tree);
}

static void show(struct dp_calls_shown *c)
{
	const struct dp_options *o = c->options;
	if (o->format == DP_FORMAT_JSON)
		dp_call_tree_json(c->tree, o->trace.asked.self, c->to);
	else if (o->trace.asked.folded)
		dp_call_tree_folded(c->tree, c->to);
	else
		dp_call_tree_text(c->tree, o->trace.asked.self, o->trace.asked.top, c->to);
	fflush(c->to);
}

void dp_calls_round(struct dp_calls_shown *c)
{
	const uint64_t every = c ? c->options->trace.asked.interval_ns : 0, now = every ? dp_now_ns() : 0;
	if (!every || now - c->shown_ns < every)
		return;
	c->shown_ns = now;
	show(c);
}

void dp_calls_final(struct dp_calls_shown *c)
{
	struct dp_call_counts n;
	if (!c)
		return;
	show(c);
	dp_call_tree_counts(c->tree, &n);
	if (n.open)
		fprintf(stderr, "dynprobe: %" PRIu64 " call%s not returned: the time is not counted\n", n.open,
		        n.open == 1 ? " has" : "s have");
	if (n.left)
		fprintf(stderr, "dynprobe: %" PRIu64 " calls ended without a return (longjmp, an exception, an unprobed jump)\n",
		        n.left);
	if (c->lost)
		fprintf(stderr,
		        "dynprobe: %" PRIu64 " events were lost, and %" PRIu64
		        " calls in progress with them: counts and times are too "
		        "small; --buffer-size 16M, --on-full block=10ms or fewer functions (-x) avoid it\n",
		        c->lost, n.dropped);
	if (n.full)
		fprintf(stderr, "dynprobe: the tree is at its limit: deeper calls are their callers' own time\n");
}
