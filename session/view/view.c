/* SPDX-License-Identifier: MIT */
#include "session/view/view.h"

#include "base/duration.h"
#include "output/trace/merged.h"
#include "session/view/eval.h"
#include "session/view/tally.h"

#include <stdlib.h>

#define LONGEST_NS UINT64_C(60000000000) /* a call that began earlier than this before a period is not seen in it */

struct dp_trace_view {
	struct dp_merged *traces;
	struct dp_joiner *joiner; /* NULL: there are no whole calls */
	struct dp_view_source of;
	struct dp_view_expr when;
	bool filtered;
	const char *lacks;
	struct dp_view_values values; /* of the last event, if it was decoded */
	struct dp_tally *tally;
	uint64_t first, last; /* times of the events that were taken */
	uint64_t period[2];   /* that is looked at: begin, end */
	bool has_period;
	uint64_t from; /* events before are only read for the calls that they begin */
	bool failed;
};

struct dp_error *dp_view_create(struct dp_trace_view **ret)
{
	struct dp_trace_view *v = calloc(1, sizeof(*v));
	if (!v)
		return dp_error_nomem();
	struct dp_error *err = dp_merged_create(&v->traces);
	if (err)
		free(v);
	else
		*ret = v;
	return err;
}

struct dp_trace_view *dp_view_destroy(struct dp_trace_view *v)
{
	if (!v)
		return NULL;
	dp_tally_destroy(v->tally);
	dp_view_expr_fini(&v->when);
	dp_view_values_fini(&v->values);
	dp_joiner_destroy(v->joiner);
	dp_merged_destroy(v->traces);
	free(v);
	return NULL;
}

struct dp_error *dp_view_add(struct dp_trace_view *v, const char *dir)
{
	return dp_merged_add(v->traces, dir);
}

static uint64_t sum(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

static uint64_t earlier(uint64_t time, uint64_t by)
{
	return time > by ? time - by : 0;
}

static struct dp_error *begins_later(uint64_t from, uint64_t to, uint64_t begin)
{
	char length[DP_DURATION_TEXT], late[DP_DURATION_TEXT];
	return dp_error_advise(
	        dp_error(DP_TAG_BAD_TRACE,
	                 "there is nothing to compare with: the earlier period of %s ends %s before the first event",
	                 dp_duration(to - from, length), dp_duration(begin - to, late)),
	        "choose a shorter --last, or a shorter time for --against");
}

/* Sets the period, and leaves out the events around it. */
static struct dp_error *limit(struct dp_trace_view *v, const struct dp_view_asked *asked)
{
	const bool limited = asked->last_ns || asked->from_ns || asked->to_ns || asked->earlier_ns;
	uint64_t begin, end;
	if (!limited && !asked->period)
		return NULL;
	if (!(v->has_period = dp_merged_bounds(v->traces, &begin, &end)))
		return NULL;
	uint64_t from = asked->last_ns ? earlier(end, asked->last_ns) : sum(begin, asked->from_ns);
	uint64_t to = !asked->last_ns && asked->to_ns ? sum(begin, asked->to_ns) : end;
	if (asked->earlier_ns) {
		from = earlier(from, asked->earlier_ns);
		to = earlier(to, asked->earlier_ns);
		if (to <= begin)
			return begins_later(from, to, begin);
	}
	v->from = limited ? from : 0;
	if (limited) { /* a call counts when it returns, and may have begun before */
		const uint64_t first = v->joiner ? earlier(from, LONGEST_NS) : from;
		const uint64_t last = asked->earlier_ns ? to - 1 : asked->to_ns ? to : UINT64_MAX; /* more may be recorded yet */
		dp_merged_limit(v->traces, first, last);
	}
	v->period[0] = from > begin ? from : begin;
	v->period[1] = to < end ? to : end;
	return NULL;
}

bool dp_view_period(const struct dp_trace_view *v, uint64_t *begin, uint64_t *end)
{
	const uint64_t offset = (uint64_t)dp_merged_clock_offset(v->traces);
	*begin = v->period[0] + offset;
	*end = v->period[1] + offset;
	return v->has_period && v->period[1] >= v->period[0];
}

struct dp_error *dp_view_begin(struct dp_trace_view *v, const struct dp_view_asked *asked, const struct dp_event_class **class,
                               size_t *n)
{
	size_t missing = SIZE_MAX, uncounted = SIZE_MAX;
	DP_TRY(dp_merged_classes(v->traces, class, n));
	DP_TRY(dp_joiner_create(*class, *n, &v->joiner));
	if (v->joiner)
		*class = dp_joiner_classes(v->joiner);
	v->of = (struct dp_view_source){*class, *n};
	dp_clock_set_offset(dp_merged_clock_offset(v->traces));
	if (asked->when)
		DP_TRY(dp_view_expr_create(&v->of, asked->when, DP_VIEW_CONDITION, &v->when, &missing));
	v->filtered = asked->when;
	if (asked->aggregation)
		DP_TRY(dp_tally_create(asked->aggregation, &v->of, &v->tally, &uncounted));
	missing = missing < uncounted ? missing : uncounted;
	v->lacks = missing < *n ? (*class)[missing].name : NULL;
	return limit(v, asked);
}

const char *dp_view_lacks(const struct dp_trace_view *v)
{
	return v->lacks;
}

static bool is_wanted(struct dp_trace_view *v, const struct dp_event *e)
{
	int64_t holds;
	if (!v->filtered)
		return true;
	if (!dp_view_expr_has(&v->when, e->probe))
		return false;
	if (!dp_view_values_of(&v->values, &v->of.class[e->probe], e)) {
		v->failed = true;
		return false;
	}
	return dp_view_eval(&v->when, &v->values, &holds) && holds;
}

bool dp_view_next(struct dp_trace_view *v, struct dp_event *ret)
{
	struct dp_event e;
	do {
		if (!dp_merged_next(v->traces, &e))
			return false;
		*ret = e;
	} while ((v->joiner && !dp_joiner_event(v->joiner, &e, ret)) || e.ns < v->from || !is_wanted(v, ret));
	return true;
}

uint64_t dp_view_unfinished(const struct dp_trace_view *v)
{
	struct dp_joiner_counts counts = {0};
	if (v->joiner)
		dp_joiner_counts(v->joiner, &counts);
	return counts.open;
}

struct dp_error *dp_view_tally(struct dp_trace_view *v, struct dp_aggs_shown *ret)
{
	struct dp_event e;
	while (dp_view_next(v, &e)) {
		v->first = v->first ? v->first : e.ns;
		v->last = e.ns;
		if (!dp_view_values_of(&v->values, &v->of.class[e.probe], &e) || !dp_tally_event(v->tally, &v->values))
			return dp_error_nomem();
	}
	if (v->failed || !dp_tally_shown(v->tally, (double)(v->last - v->first) / 1e9, ret))
		return dp_error_nomem();
	return NULL;
}

uint64_t dp_view_lost(const struct dp_trace_view *v)
{
	return dp_merged_lost(v->traces);
}

uint64_t dp_view_failed(const struct dp_trace_view *v)
{
	return v->tally ? dp_tally_failed(v->tally) : 0;
}

void dp_view_damages(const struct dp_trace_view *v, void (*each)(const char *text, void *data), void *data)
{
	dp_merged_damages(v->traces, each, data);
}
