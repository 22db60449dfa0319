/* SPDX-License-Identifier: MIT */
/*
 * Aggregations and durations of one target. A duration also needs the function's entry: each function whose returns are probed
 * gets one more site there, which belongs to no probe and is not reported.
 */
#include "session/process/session_aggs.h"
#include "session/process/session_trap.h"

#include "agent/abi.h"
#include "probes/expr/scope/scope.h"
#include "session/process/session_scope.h"

#include <stdlib.h>
#include <string.h>

#define KEYS_MANY 4096u
#define KEYS_FEW  1024u
#define KEY_WORDS 8u /* keys with more cells than this get the smaller table */

/* ---- who needs durations ---------------------------------------------------------------------------------------------- */

static bool is_timed_expr(const struct dp_expr *e)
{
	if (!e)
		return false;
	if (e->kind == DP_EXPR_FACT && (e->value == DP_FACT_DURATION || e->value == DP_FACT_CALL))
		return true;
	return is_timed_expr(e->a) || is_timed_expr(e->b) || is_timed_expr(e->c);
}

static bool is_timed_fields(const struct dp_fields *fields)
{
	for (size_t i = 0; i < fields->n; i++)
		if (is_timed_expr(fields->field[i].expr) || is_timed_expr(fields->field[i].count))
			return true;
	return false;
}

static bool is_timed(const struct dp_session *s, size_t i)
{
	const struct dp_asked *a = &s->trace->asked;
	const struct dp_probe *p = &s->trace->probe[i];
	const struct dp_place *place = &s->place[i];
	if (s->trace->typed[i].call.chosen || s->trace->typed[i].enters)
		return true;
	if (!p->leaves && !a->slower_ns)
		return false;
	/* The texts are parsed later, for each site. To reserve room, it is enough that they may need a duration. */
	return a->slower_ns || dp_asked_mentions(a, "duration") || is_timed_expr(place->when ? place->when : p->when) ||
	       is_timed_fields(place->bound_fields ? &place->fields : &p->fields);
}

static bool any_timed(const struct dp_session *s)
{
	for (size_t i = 0; i < s->trace->nprobes; i++)
		if (!s->place[i].refused && !s->place[i].pending && is_timed(s, i))
			return true;
	return false;
}

/* ---- room ------------------------------------------------------------------------------------------------------------- */

/* Go functions have too little stack for strings: the agent uses one of its own, which a thread's slot has. */
static bool has_small_stacks(const struct dp_session *s)
{
	struct dp_image *image = dp_target_image(s->target);
	for (size_t i = 0; i < dp_image_nmodules(image); i++)
		if (dp_module_small_stacks(dp_image_module(image, i)))
			return true;
	return false;
}

static struct dp_cells_want make_want(const struct dp_session *s, bool timed)
{
	const struct dp_trace_spec *trace = s->trace;
	const struct dp_asked *a = &trace->asked;
	const unsigned values = dp_aggs_values(trace), frames = dp_aggs_depth(a);
	struct dp_cells_want w = {.pairs = timed, .entries = timed ? (unsigned)trace->nprobes : 0, .only = a->what != 0};
	dp_aggs_cells(a, &w);
	if (values || frames)
		w.keys = w.words > KEY_WORDS ? KEYS_FEW : KEYS_MANY;
	if (frames || dp_asked_tuples(a))
		w.stack = w.keys ? 1 + values + dp_aggs_texts(trace, w.text) + frames : 0;
	w.values = w.stack ? values : 0;
	w.unwinds = dp_aggs_unwind(trace) || (dp_asked_has_key(a, DP_KEY_TEXT) && has_small_stacks(s));
	return w;
}

static void forget(struct dp_session_aggs *a, size_t nprobes)
{
	for (size_t i = 0; a->answer && i < nprobes; i++)
		dp_aggs_answer_fini(&a->answer[i]);
	for (size_t i = 0; i < a->npairs; i++) {
		dp_error_destroy(a->no_entry[i]);
		dp_expr_destroy(a->chosen_when[i]);
	}
	a->npairs = 0;
}

struct dp_error *dp_session_aggs_begin(struct dp_session *s)
{
	const struct dp_trace_spec *trace = s->trace;
	const bool timed = any_timed(s);
	struct dp_session_aggs *a = s->answers;
	if (!trace->asked.what && !timed)
		return NULL;
	if (!a) {
		a = s->answers = calloc(1, sizeof(*a));
		if (!a)
			return dp_error_nomem();
		a->nprobes = trace->nprobes;
		a->answer = calloc(trace->nprobes + 1, sizeof(*a->answer));
		a->entry = calloc(trace->nprobes + 1, sizeof(*a->entry));
		a->no_entry = calloc(trace->nprobes + 1, sizeof(*a->no_entry));
		a->probe = calloc(trace->nprobes + 1, sizeof(*a->probe));
		a->chosen = calloc(trace->nprobes + 1, sizeof(*a->chosen));
		a->chosen_when = calloc(trace->nprobes + 1, sizeof(*a->chosen_when));
	}
	if (!a->answer || !a->entry || !a->probe || !a->no_entry || !a->chosen || !a->chosen_when)
		return dp_error_nomem();
	forget(a, a->nprobes);
	a->want = make_want(s, timed);
	dp_target_want_cells(s->target, &a->want);
	if (a->want.only && !a->want.unwinds)
		dp_target_no_rings(s->target);
	return NULL;
}

struct dp_session_aggs *dp_session_aggs_destroy(struct dp_session_aggs *a)
{
	if (!a)
		return NULL;
	forget(a, a->nprobes);
	free(a->answer);
	free(a->entry);
	free(a->probe);
	free(a->no_entry);
	free(a->chosen);
	free(a->chosen_when);
	free(a);
	return NULL;
}

void dp_session_aggs_loss(struct dp_session *s, unsigned i)
{
	struct dp_agg_loss loss;
	dp_target_agg_loss(s->target, i, &loss);
	s->place[i].unpaired = loss.unpaired;
	s->place[i].crowded = loss.crowded;
}

void dp_session_aggs_nowhere(struct dp_runtime *rt)
{
	rt->cells = DP_NOWHERE + 0x100500;
	rt->keyed = DP_NOWHERE + 0x100600;
	rt->stacked = rt->stacked_apart = rt->stacked_done = DP_NOWHERE + 0x100700;
	rt->answers = (struct dp_aggs){.head = DP_NOWHERE + 0x200000, .size = 4096, .nblocks = 1, .pairs = 1024};
	rt->tick_ns = UINT64_C(1) << 32;
}

static bool names_flags(const char *text)
{
	return text && dp_context_shows_flags(text);
}

/* Checks the text as typed: names may get their meaning later, in a library that is not loaded yet. */
static bool shows_flags(const struct dp_probe *p, const struct dp_typed *typed)
{
	bool shows = names_flags(typed->when);
	for (size_t i = 0; i < p->fields.n && !shows; i++)
		shows = p->fields.field[i].source == DP_SRC_PARK;
	for (size_t i = 0; i < typed->ncontexts && !shows; i++)
		shows = names_flags(typed->context[i]);
	return shows;
}

bool dp_session_shows_flags(const struct dp_session *s)
{
	const struct dp_trace_spec *trace = s->trace;
	bool shows = dp_target_gates(s->target) || dp_target_nresidents(s->target) || names_flags(trace->asked.by);
	for (size_t i = 0; i < trace->asked.nparts && !shows; i++)
		shows = names_flags(trace->asked.part[i].value);
	for (size_t i = 0; i < trace->nprobes && !shows; i++)
		shows = shows_flags(&trace->probe[i], &trace->typed[i]);
	return shows;
}

/* ---- entries --------------------------------------------------------------------------------------------------------------- */

static struct dp_error *no_return(const struct dp_probe *p)
{
	return dp_error_advise(dp_error(DP_TAG_NO_VALUE, "'%s' is not a return, and a call's duration is known only at its end",
	                                p->spec.text),
	                       "probe the function's returns: --return FUNCTION");
}

/* The entry of a system call: the site before it. */
static struct dp_error *find_call(struct dp_session *s, size_t i, struct dp_site *ret)
{
	struct dp_image *image = dp_target_image(s->target);
	const struct dp_call_at *call = &s->trace->typed[i].call;
	if (!call->exit)
		return no_return(&s->trace->probe[i]);
	if (dp_call_returns_twice(call->nr))
		return dp_error(DP_TAG_NO_VALUE, "a system call that returns twice has no duration: leave it out");
	ret->addr = dp_addr_add(dp_addr_of(s->place[i].addr), -(int64_t)call->back);
	ret->module = dp_image_module_at(image, ret->addr);
	dp_image_function_at(image, ret->addr, &ret->function);
	return NULL;
}

/* The entry of the function that the exit belongs to. Code that gcc moved elsewhere (foo.cold) belongs to foo. */
static struct dp_error *find_entry(struct dp_session *s, const struct dp_probe *p, uint64_t exit, struct dp_site *ret)
{
	struct dp_image *image = dp_target_image(s->target);
	const char *cold = p->spec.symbol ? strstr(p->spec.symbol, ".cold") : NULL;
	if (!p->leaves)
		return no_return(p);
	if (cold) {
		dp_auto_free char *name = strndup(p->spec.symbol, (size_t)(cold - p->spec.symbol));
		const struct dp_spec spec = {.text = p->spec.text, .module = p->spec.module, .symbol = name};
		return name ? dp_image_resolve(image, &spec, ret) : dp_error_nomem();
	}
	if (!dp_image_function_at(image, dp_addr_of(exit), &ret->function))
		return no_return(p);
	ret->addr = ret->function.start;
	ret->module = ret->function.module;
	return NULL;
}

static struct dp_error *plan_entry(struct dp_session *s, struct dp_planner *planner, struct dp_code_view *view,
                                   struct dp_site *site, struct dp_request request)
{
	struct dp_session_aggs *a = s->answers;
	const uint16_t pair = request.pair;
	const char *chosen = a->chosen[pair - 1];
	struct dp_plan plan;
	if (chosen)
		DP_TRY(dp_scope_condition(NULL, chosen, &a->chosen_when[pair - 1]));
	request.when = a->chosen_when[pair - 1];
	DP_TRY(dp_code_view_get(view, site, &request.text));
	request.site = site->addr.v + dp_text_endbr(request.text, site->addr.v);
	return dp_target_name_overlap(s->target, request.site, dp_planner_add(planner, &request, &plan));
}

/* The place of a thread's current goroutine is known in executables that have no thread-local variables but Go's. */
static struct dp_error *check_goroutines(const struct dp_session *s, struct dp_module *m)
{
	if (m == dp_image_module(dp_target_image(s->target), 0) && dp_module_finds_goroutines(m))
		return NULL;
	return dp_error(DP_TAG_NO_VALUE,
	                "Go calls in %s have no duration: dynprobe finds goroutines only in executables without C's thread-local "
	                "variables",
	                dp_module_name(m));
}

static bool same_choice(const char *x, const char *y)
{
	return x == y || (x && y && !strcmp(x, y));
}

/* The number of the pair whose entry is that of probe `e`. */
static uint16_t pair_of(struct dp_session_aggs *a, size_t e, uint64_t entry)
{
	size_t k = 0;
	while (k < a->npairs && a->probe[k] != e + 1)
		k++;
	if (k == a->npairs) {
		a->npairs++;
		a->entry[k] = entry;
		a->probe[k] = e + 1;
		a->chosen[k] = NULL;
		a->chosen_when[k] = NULL;
		a->no_entry[k] = NULL;
	}
	return (uint16_t)(k + 1);
}

/* A call whose entry has a probe of its own. */
static struct dp_error *join_pair(struct dp_session *s, size_t i, struct dp_request *ret)
{
	const struct dp_typed *typed = &s->trace->typed[i];
	const size_t e = typed->enters ? i : typed->entry - 1;
	struct dp_module *m = dp_image_module_at(dp_target_image(s->target), dp_addr_of(s->place[e].addr));
	ret->goroutines = m && dp_module_small_stacks(m);
	if (ret->goroutines)
		DP_TRY(check_goroutines(s, m));
	if (e != i && s->place[e].addr == s->place[i].addr)
		return dp_error(DP_TAG_NO_VALUE,
		                "the function's first instruction leaves it, so its arguments and its result are at "
		                "one place: use -t args with --function");
	ret->pair = pair_of(s->answers, e, s->place[e].addr);
	ret->enters = typed->enters;
	return NULL;
}

/* Sets the number of the pair that the exit belongs to. */
static struct dp_error *find_pair(struct dp_session *s, struct dp_planner *planner, struct dp_code_view *view, size_t i,
                                  struct dp_request *ret)
{
	struct dp_session_aggs *a = s->answers;
	const struct dp_typed *typed = &s->trace->typed[i];
	struct dp_site site = {0};
	size_t k;
	if (typed->enters || typed->entry)
		return join_pair(s, i, ret);
	DP_TRY(typed->call.is ? find_call(s, i, &site) : find_entry(s, &s->trace->probe[i], s->place[i].addr, &site));
	ret->goroutines = !typed->call.is && site.module && dp_module_small_stacks(site.module);
	if (ret->goroutines)
		DP_TRY(check_goroutines(s, site.module));
	if (site.addr.v == s->place[i].addr) /* the exit's stub would run first, and find the entry of the call before */
		return dp_error(DP_TAG_NO_VALUE, "the function's first instruction leaves it, so such calls have no duration");
	for (k = a->npairs; k-- > 0;)
		if (!a->probe[k] && a->entry[k] == site.addr.v && same_choice(a->chosen[k], typed->chosen))
			break;
	if (k == SIZE_MAX) {
		k = a->npairs++;
		a->entry[k] = site.addr.v;
		a->probe[k] = 0;
		a->chosen[k] = typed->chosen;
		a->chosen_when[k] = NULL;
		a->no_entry[k] = plan_entry(s, planner, view, &site,
		                            (struct dp_request){.probe = DP_NO_PROBE,
		                                                .fields = &a->none,
		                                                .pair = (uint16_t)(k + 1),
		                                                .enters = true,
		                                                .goroutines = ret->goroutines,
		                                                .event = ret->lost - i * sizeof(struct dp_lost) - DP_LOST_OFFSET,
		                                                .tactics = dp_session_tactics(s, i)});
	}
	ret->pair = (uint16_t)(k + 1);
	if (!a->no_entry[k])
		return NULL;
	return dp_error(a->no_entry[k]->tag, "the %s entry, which its %s need: %s", typed->call.is ? "call's" : "function's",
	                typed->call.chosen ? "exits" : "durations", a->no_entry[k]->message);
}

/* ---- requests -------------------------------------------------------------------------------------------------------------- */

static struct dp_error *check_one(struct dp_session *s, size_t i)
{
	struct dp_agg answer = {0};
	struct dp_error *err = dp_aggs_answer(s, i, &answer);
	dp_aggs_answer_fini(&answer);
	if (!err || err->tag == DP_TAG_SECCOMP)
		return dp_error_destroy(err);
	return dp_error_wrap(err, "probe '%s' in %d (%s)", s->trace->probe[i].spec.text, dp_target_pid(s->target),
	                     dp_target_comm(s->target));
}

/* Some of a pattern's functions may lack a variable: they are refused later, alone. */
struct dp_error *dp_session_aggs_check(struct dp_session *s)
{
	struct dp_error *first = NULL;
	size_t good = 0;
	for (size_t i = 0; s->trace->asked.what && i < s->trace->nprobes; i++) {
		const struct dp_probe *p = &s->trace->probe[i];
		if (s->place[i].refused || s->place[i].pending || p->reserved)
			continue;
		struct dp_error *err = check_one(s, i);
		good += !err;
		dp_error_destroy(first || !err ? err : dp_take(first, err));
		if (first && !p->selected)
			return first;
	}
	return good ? dp_error_destroy(first) : first;
}

struct dp_error *dp_session_aggs_request(struct dp_session *s, struct dp_planner *planner, struct dp_code_view *view, size_t i,
                                         struct dp_request *request)
{
	struct dp_session_aggs *a = s->answers;
	if (!a)
		return NULL;
	if (is_timed(s, i)) {
		DP_TRY(find_pair(s, planner, view, i, request));
		request->slower = request->enters ? 0 : s->trace->asked.slower_ns;
	}
	if (!s->trace->asked.what)
		return NULL;
	DP_TRY(dp_aggs_answer(s, i, &a->answer[i]));
	request->answer = &a->answer[i];
	return NULL;
}

/* Length of a return's name without the number that makes it unique. */
static size_t exit_name(const char *name)
{
	static const char word[] = "_return";
	const size_t len = strlen(name), least = sizeof(word) - 1;
	size_t end = len;
	while (end && name[end - 1] >= '0' && name[end - 1] <= '9')
		end--;
	if (end < len && end && name[end - 1] == '_')
		end--;
	else
		end = len;
	return end >= least && !memcmp(name + end - least, word, least) ? end : len;
}

size_t dp_aggs_row(const struct dp_trace_spec *trace, size_t i)
{
	const size_t len = exit_name(trace->probe[i].name);
	const char *title = trace->probe[i].title;
	while (title && i && trace->probe[i - 1].title && !strcmp(trace->probe[i - 1].title, title))
		i--;
	if (title)
		return i;
	while (i && trace->probe[i].build_id && trace->probe[i - 1].build_id && exit_name(trace->probe[i - 1].name) == len &&
	       !memcmp(trace->probe[i].name, trace->probe[i - 1].name, len))
		i--;
	return i;
}
