/* SPDX-License-Identifier: MIT */
/*
 * --return f -t args: one event for each whole call. Arguments are where the ABI and the debug information have them when the
 * function begins, and seldom still there when it returns. So the function gets a probe at its entry as well, which records them;
 * output/events/joiner.c joins the two events (decision 0060).
 */
#include "session/expand/expand_internal.h"

#include <stdlib.h>
#include <string.h>

static bool is_args(const char *context)
{
	return !strcmp(context, "args");
}

/* Resident probes and waiting ones have their values at the return: a later command shows them, one by one. */
bool dp_expand_is_whole(const struct dp_expander *x, size_t from)
{
	const struct dp_typed *typed = &x->from->typed[from];
	if (x->from->attach || x->from->asked.what || typed->form || x->from->probe[from].spec.point != DP_POINT_RETURN)
		return false;
	for (size_t i = 0; i < typed->ncontexts; i++)
		if (is_args(typed->context[i]))
			return true;
	return false;
}

/* The order in a line: f(ARGS) = RETVAL <DURATION> OTHERS. */
static int rank(const char *context)
{
	return is_args(context) ? 0 : !strcmp(context, "retval") ? 1 : !strcmp(context, "duration") ? 2 : 3;
}

/* The call's number first, then the arguments at the entry, all others at the return. */
static struct dp_error *split_contexts(struct dp_typed *t)
{
	char **context = calloc(t->ncontexts + 2, sizeof(*context));
	size_t n = 0;
	if (!context || !(context[n++] = strdup(DP_CONTEXT_WHOLE))) {
		free(context);
		return dp_error_nomem();
	}
	for (int k = t->enters ? 0 : 1; k <= (t->enters ? 0 : 3); k++)
		for (size_t i = 0; i < t->ncontexts; i++)
			if (t->context[i] && rank(t->context[i]) == k)
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
	DP_TRY(split_contexts(t));
	return split_when(t);
}

struct dp_error *dp_expand_entry(struct dp_expander *x, size_t from, const struct dp_function *f, size_t *ret)
{
	const struct dp_expand_place at = {.f = f, .point = DP_POINT_ENTRY, .bound = true, .enters = true};
	DP_TRY(dp_expand_add(x, from, &at, NULL));
	*ret = x->out.trace.nprobes;
	return NULL;
}
