/* SPDX-License-Identifier: MIT */
/*
 * --return f -t args: one event for each whole call. Arguments are where the ABI and the debug information have them when the
 * function begins, and seldom still there when it returns. So the function gets a probe at its entry as well, which records them;
 * output/events/joiner.c joins the two events (decision 0060). The same for -t EXPR if EXPR has no value at a return, but has one
 * at the entry (decision 0082).
 */
#include "session/expand/expand_internal.h"

#include "probes/expr/scope/scope.h"

#include <stdlib.h>
#include <string.h>

static bool is_args(const char *context)
{
	return !strcmp(context, "args");
}

/* The order in a line: f(ARGS) = RETVAL <DURATION> OTHERS. */
#define OTHERS 3
static int rank(const char *context)
{
	return !strcmp(context, "retval") ? 1 : !strcmp(context, "duration") ? 2 : OTHERS;
}

/* Resident probes and waiting ones have their values at the return: a later command shows them, one by one. */
static bool may_be_whole(const struct dp_expander *x, size_t from)
{
	return !x->from->attach && !x->from->asked.what && !x->from->typed[from].form &&
	       x->from->probe[from].spec.point == DP_POINT_RETURN;
}

/* Does the context have a value at the site? Not if it is unknown there: the probe's own compilation says so. */
static bool has_value(struct dp_expander *x, const char *context, uint64_t addr, enum dp_point point)
{
	struct dp_scope_at at = {.site = {.addr = dp_addr_of(addr)}, .point = point};
	struct dp_fields fields = {0};
	struct dp_scope *scope;
	bool is_there = true;
	at.site.module = dp_image_module_at(x->image, at.site.addr);
	dp_image_function_at(x->image, at.site.addr, &at.site.function);
	struct dp_error *err = dp_scope_create(x->image, &at, &scope);
	if (!err) {
		err = dp_scope_fields(scope, context, &fields);
		dp_scope_destroy(scope);
	}
	for (size_t i = 0; i < fields.n; i++)
		is_there &= fields.field[i].source != DP_SRC_NONE;
	is_there &= !err && fields.n;
	dp_fields_fini(&fields);
	dp_error_destroy(err);
	return is_there;
}

static bool has_value_at_returns(struct dp_expander *x, const char *context, const struct dp_points *points)
{
	for (size_t i = 0; i < points->nexits; i++)
		if (points->exit[i].kind != DP_EXIT_UNSURE && !has_value(x, context, points->exit[i].addr, DP_POINT_RETURN))
			return false;
	return true;
}

#define MASKED 64u /* contexts that may be recorded at the entry */

static bool is_early(uint64_t early, size_t i)
{
	return i < MASKED && early >> i & 1;
}

uint64_t dp_expand_early(struct dp_expander *x, size_t from, const struct dp_function_points *fp)
{
	const struct dp_typed *typed = &x->from->typed[from];
	uint64_t early = 0;
	for (size_t i = 0; may_be_whole(x, from) && i < typed->ncontexts && i < MASKED; i++) {
		const char *context = typed->context[i];
		if (is_args(context) ||
		    (rank(context) == OTHERS && !dp_scope_is_fixed(context) && !has_value_at_returns(x, context, &fp->points) &&
		     has_value(x, context, fp->part[0].start.v, DP_POINT_ENTRY)))
			early |= UINT64_C(1) << i;
	}
	return early;
}

/* The call's number first, then what is recorded at the entry, all others at the return. */
static struct dp_error *split_contexts(struct dp_typed *t, uint64_t early)
{
	char **context = calloc(t->ncontexts + 2, sizeof(*context));
	size_t n = 0;
	if (!context || !(context[n++] = strdup(DP_CONTEXT_WHOLE))) {
		free(context);
		return dp_error_nomem();
	}
	for (int k = t->enters ? 0 : 1; k <= (t->enters ? 0 : OTHERS); k++)
		for (size_t i = 0; i < t->ncontexts; i++)
			if (t->context[i] && (is_early(early, i) ? 0 : rank(t->context[i])) == k)
				context[n++] = dp_take(t->context[i], NULL);
	for (size_t i = 0; i < t->ncontexts; i++)
		free(t->context[i]);
	free(t->context);
	t->context = context;
	t->ncontexts = n;
	return NULL;
}

static struct dp_error *split_when(struct dp_typed *t)
{
	dp_auto_free char *entry = NULL, *at_return = NULL;
	if (!t->when)
		return NULL;
	DP_TRY(dp_scope_split(t->when, &entry, &at_return));
	free(t->when);
	t->filtered = !t->enters && at_return;
	t->when = t->enters ? dp_take(entry, NULL) : dp_take(at_return, NULL);
	return NULL;
}

/* A step of a tree of calls records the stack pointer alone. */
static struct dp_error *take_stack(struct dp_typed *t, const struct dp_expand_place *at)
{
	t->tree = at->tree;
	t->tree_enters = at->tree_enters;
	t->tails = at->tails;
	t->root = at->root;
	free(t->context);
	t->context = calloc(2, sizeof(*t->context));
	t->ncontexts = 0;
	if (!t->context || !(t->context[0] = strdup("reg:rsp")))
		return dp_error_nomem();
	t->ncontexts = 1;
	return NULL;
}

struct dp_error *dp_expand_half(struct dp_typed *t, const struct dp_expand_place *at)
{
	if (at->tree)
		return take_stack(t, at);
	if (!at->enters && !at->entry)
		return NULL;
	t->enters = at->enters;
	t->entry = at->entry;
	DP_TRY(split_contexts(t, at->early));
	return split_when(t);
}

struct dp_error *dp_expand_entry(struct dp_expander *x, size_t from, const struct dp_function *f, size_t *ret)
{
	const struct dp_expand_place at = {.f = f, .point = DP_POINT_ENTRY, .bound = true, .enters = true, .early = x->early};
	DP_TRY(dp_expand_add(x, from, &at, NULL));
	*ret = x->out.trace.nprobes;
	return NULL;
}
