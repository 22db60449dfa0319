/* SPDX-License-Identifier: MIT */
/* view --against: what changed since an earlier period of the same traces, or since another trace. */
#include "cli/commands/command_view.h"

#include "output/aggregations/compared.h"

#include <string.h>

#define BEFORE 0
#define AFTER  1

struct comparison {
	const struct dp_options *options;
	struct dp_asked asked; /* borrows what the options own */
	struct dp_trace_view *view[2];
	struct dp_compared found;
};

static struct dp_error *open_side(struct comparison *c, int side)
{
	const struct dp_options *o = c->options;
	const bool other = side == BEFORE && !o->view.against_ns;
	DP_TRY(dp_view_create(&c->view[side]));
	return other ? dp_view_add_named(c->view[side], o->view.against) : dp_view_add_traces(c->view[side], o);
}

/* ---- what is compared ------------------------------------------------------------------------------------------------------ */

static bool is_timed(const struct dp_event_class *class)
{
	for (size_t i = 0; i < class->fields->n; i++)
		if (!strcmp(class->fields->field[i].name, "duration"))
			return true;
	return false;
}

/* If nobody says what to compare: the durations, if there are any, else the hits. */
static struct dp_error *choose(struct comparison *c)
{
	static const struct dp_agg_part durations = {.what = DP_AGG_DECIMAL, .value = "duration"};
	const struct dp_view_asked events = {0};
	struct dp_trace_view *view = NULL;
	const struct dp_event_class *class;
	size_t n = 0;
	bool timed = false;
	c->asked = c->options->trace.asked;
	if (c->asked.what)
		return NULL;
	struct dp_error *err = dp_view_create(&view);
	if (!err)
		err = dp_view_add_traces(view, c->options);
	if (!err)
		err = dp_view_begin(view, &events, &class, &n);
	for (size_t i = 0; !err && i < n; i++)
		timed |= is_timed(&class[i]);
	dp_view_destroy(view);
	dp_asked_count(&c->asked);
	if (timed) {
		c->asked.part[0] = durations;
		c->asked.what |= durations.what;
	}
	return err;
}

/* ---- both sides ------------------------------------------------------------------------------------------------------------ */

static struct dp_error *tally(struct comparison *c, int side, struct dp_aggs_shown *shown, uint64_t *begin)
{
	struct dp_view_asked asked = dp_view_asked_of(c->options);
	const struct dp_event_class *class;
	uint64_t end;
	size_t n;
	asked.aggregation = &c->asked;
	asked.earlier_ns = side == BEFORE ? c->options->view.against_ns : 0;
	asked.period = true;
	DP_TRY(open_side(c, side));
	DP_TRY(dp_view_begin(c->view[side], &asked, &class, &n));
	if (dp_view_lacks(c->view[side]) && (side == AFTER || !asked.earlier_ns))
		fprintf(stderr, "dynprobe: events of %s are left out: they have not all the fields\n", dp_view_lacks(c->view[side]));
	if (!dp_view_period(c->view[side], begin, &end))
		return dp_error(DP_TAG_BAD_TRACE, "there is nothing to compare: the %s period has no event",
		                side == BEFORE ? "earlier" : "later");
	DP_TRY(dp_view_tally(c->view[side], shown));
	shown->seconds = (double)(end - *begin) / 1e9;
	return NULL;
}

static struct dp_error *print(struct comparison *c, FILE *to)
{
	const bool json = c->options->format == DP_FORMAT_JSON;
	const bool ok = json ? dp_compared_json(&c->found, to) : dp_compared_text(&c->found, to);
	return ok ? NULL : dp_error_nomem();
}

static struct dp_error *compare(struct comparison *c, struct dp_source_lines *sources, FILE *to)
{
	struct dp_compared *f = &c->found;
	DP_TRY(choose(c));
	DP_TRY(tally(c, AFTER, &f->after.shown, &f->after.begin_ns));
	DP_TRY(tally(c, BEFORE, &f->before.shown, &f->before.begin_ns));
	f->before.shown.sources = f->after.shown.sources = sources;
	return print(c, to);
}

struct dp_error *dp_view_against(const struct dp_options *o, struct dp_source_lines *sources, FILE *to, bool *damaged)
{
	struct comparison c = {.options = o};
	struct dp_error *err = compare(&c, sources, to);
	for (int side = BEFORE; side <= AFTER; side++) {
		*damaged |= c.view[side] && !err && dp_view_report(c.view[side]);
		dp_view_destroy(c.view[side]);
	}
	return err;
}
