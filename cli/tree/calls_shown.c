/* SPDX-License-Identifier: MIT */
#include "cli/tree/calls_shown.h"
#include "cli/tree/calls_notes.h"

#include "base/cleanup.h"
#include "cli/terminal/table.h"
#include "injector/tracee/tracee.h"
#include "output/tree/call_tree.h"

#include <stdlib.h>
#include <string.h>

struct dp_calls_shown {
	const struct dp_options *options;
	const struct dp_trace_spec *trace;
	FILE *to;
	struct dp_call_tree *tree;
	struct dp_call_function *function;
	const char **spec; /* of each */
	size_t functions;
	struct dp_drawn *drawn;
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
		if (typed->tree_enters)
			c->spec[typed->tree - 1] = p->spec.text;
		c->functions = typed->tree > c->functions ? typed->tree : c->functions;
	}
}

struct dp_error *dp_calls_open(const struct dp_options *options, const struct dp_trace_spec *trace, FILE *to,
                               struct dp_drawn *drawn, struct dp_calls_shown **ret)
{
	*ret = NULL;
	if (!trace->asked.tree)
		return NULL;
	struct dp_calls_shown *c = *ret = calloc(1, sizeof(*c));
	if (c) {
		c->function = calloc(trace->nprobes + 1, sizeof(*c->function));
		c->spec = calloc(trace->nprobes + 1, sizeof(*c->spec));
	}
	if (!c || !c->function || !c->spec)
		return dp_error_nomem();
	c->options = options;
	c->trace = trace;
	c->to = to;
	c->drawn = drawn;
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
	free(c->spec);
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

static void print(const struct dp_calls_shown *c, const struct dp_call_tree_how *how)
{
	const struct dp_options *o = c->options;
	if (o->format == DP_FORMAT_JSON)
		dp_call_tree_json(c->tree, how, c->to);
	else if (o->trace.asked.folded)
		dp_call_tree_folded(c->tree, c->to);
	else if (!o->flame || how->top || o->trace.asked.interval_ns || o->output)
		dp_call_tree_text(c->tree, how, c->to);
}

static void draw(const struct dp_calls_shown *c, const struct dp_call_tree_how *how)
{
	dp_auto_free char *text = NULL;
	size_t n;
	FILE *to = open_memstream(&text, &n);
	if (!to)
		return;
	dp_call_tree_text(c->tree, how, to);
	if (!fclose(to))
		dp_table_draw(c->drawn, text, c->to);
}

static void show(struct dp_calls_shown *c, bool final, double seconds)
{
	const struct dp_asked *a = &c->options->trace.asked;
	const struct dp_call_tree_how how = {.by_function = a->self, .top = a->top, .final = final, .seconds = seconds};
	const bool redrawn = dp_table_is_redrawn(c->options);
	if (!final && redrawn)
		draw(c, &how);
	if (final)
		dp_redraw_clear(c->drawn, c->to);
	if (final || !redrawn)
		print(c, &how);
	fflush(c->to);
}

void dp_calls_round(struct dp_calls_shown *c, double seconds)
{
	const uint64_t every = c ? c->trace->asked.interval_ns : 0, now = every ? dp_now_ns() : 0;
	if (!every || now - c->shown_ns < every || c->options->quiet)
		return;
	c->shown_ns = now;
	show(c, false, seconds);
}

void dp_calls_final(struct dp_calls_shown *c, double seconds)
{
	if (!c)
		return;
	show(c, true, seconds);
	dp_calls_note(&(struct dp_calls_noted){c->tree, c->function, c->spec, c->functions, c->lost, c->options->quiet});
}

void dp_calls_folded(const struct dp_calls_shown *c, FILE *to)
{
	dp_call_tree_folded(c->tree, to);
}

void dp_calls_title(const struct dp_calls_shown *c, struct dp_buf *b)
{
	unsigned n = 0;
	dp_buf_printf(b, "own time of calls");
	for (size_t i = 0; i < c->functions; i++)
		if (c->function[i].root && n++ < 3)
			dp_buf_printf(b, "%s%s", n > 1 ? ", " : " below ", c->function[i].name);
	if (n > 3)
		dp_buf_printf(b, ", ...");
}
