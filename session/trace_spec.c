/* SPDX-License-Identifier: MIT */
#include "session/trace_spec.h"

#include "probes/expr/scope/scope.h"
#include "probes/expr/syntax/printf_form.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool dp_typed_copy(const struct dp_typed *from, struct dp_typed *to)
{
	to->context = calloc(from->ncontexts + 1, sizeof(*to->context));
	if (!to->context)
		return false;
	for (size_t i = 0; i < from->ncontexts; i++) {
		if (!(to->context[i] = strdup(from->context[i])))
			return false;
		to->ncontexts++;
	}
	to->when = from->when ? strdup(from->when) : NULL;
	to->call = from->call;
	to->enters = from->enters;
	to->filtered = from->filtered;
	to->entry = from->entry;
	to->calls = from->calls;
	to->chosen = from->chosen ? strdup(from->chosen) : NULL;
	to->inlined = from->inlined ? strdup(from->inlined) : NULL;
	struct dp_error *err = from->form ? dp_printf_parse(from->form->text, &to->form) : NULL;
	if (err) {
		dp_error_destroy(err);
		return false;
	}
	return (!from->when || to->when) && (!from->inlined || to->inlined) && (!from->chosen || to->chosen);
}

void dp_typed_fini(struct dp_typed *t)
{
	for (size_t i = 0; i < t->ncontexts; i++)
		free(t->context[i]);
	free(t->context);
	free(t->when);
	free(t->inlined);
	free(t->chosen);
	dp_printf_destroy(t->form);
	*t = (struct dp_typed){0};
}

bool dp_trace_found(const struct dp_trace_spec *trace, pid_t pid)
{
	for (size_t i = 0; i < trace->nfound; i++)
		if (trace->found[i] == pid)
			return true;
	return false;
}

bool dp_trace_found_ended(const struct dp_trace_spec *trace, pid_t pid, const struct dp_error *err)
{
	const bool ended = err->tag == DP_TAG_NO_PROCESS || err->tag == DP_TAG_ZOMBIE || err->tag == DP_TAG_GONE;
	const bool gone = err->tag == DP_TAG_ZOMBIE || (kill(pid, 0) && errno == ESRCH);
	return ended && (dp_trace_found(trace, pid) || (dp_trace_awaits(trace) && gone));
}

struct dp_error *dp_typed_apply(const struct dp_typed *typed, struct dp_probe *p)
{
	for (size_t i = 0; i < typed->ncontexts; i++) {
		DP_TRY(dp_context_check(typed->context[i]));
		if (dp_scope_is_fixed(typed->context[i]))
			DP_TRY(dp_fields_add(&p->fields, typed->context[i]));
	}
	if (!typed->when || p->when)
		return NULL;
	DP_TRY(dp_scope_check(typed->when));
	return dp_scope_has_names(typed->when) ? NULL : dp_scope_condition(NULL, typed->when, &p->when);
}

void dp_trace_awaited(const struct dp_trace_spec *trace, char *ret, size_t size)
{
	if (trace->all && trace->nprobes)
		snprintf(ret, size, "process that has %s%s", trace->probe[0].spec.text,
		         trace->nprobes > 1 ? " or another of the places" : "");
	else
		snprintf(ret, size, "process of %s", trace->programs.n ? trace->programs.item[0] : "");
}
