/* SPDX-License-Identifier: MIT */
/*
 * Lines, markers and returns of a library that is not there yet: how many places each of them is, nobody knows. So each holds
 * probes in reserve, which get their places when the library comes. Once they have them, they are probes like all others, and
 * bound to that build of the library.
 */
#include "session/trace_spec.h"
#include "session/expand/expand.h"
#include "session/process/pending.h"

#include <stdlib.h>
#include <string.h>

/* What was typed stays: writers show it, and the format and its fields are the same. */
static void take_typed(struct dp_typed *to, struct dp_typed *from)
{
	struct dp_typed kept = *to;
	*to = *from;
	to->form = kept.form;
	kept.form = from->form;
	*from = kept;
}

static void take_probe(struct dp_probe *to, struct dp_probe *from)
{
	struct dp_spec typed = to->spec;
	struct dp_expr *when = to->when;
	char *text = from->spec.text;
	to->when = from->when; /* a conditional jump may have added to it */
	from->when = when;
	to->spec = from->spec;
	to->spec.text = typed.text;
	typed.text = text;
	from->spec = typed;
	to->entry = from->entry;
	to->leaves = from->leaves;
	to->selected = true;
	to->build_id = dp_take(from->build_id, NULL);
	to->refused = dp_take(from->refused, NULL);
	to->waits = to->reserved = false;
}

static size_t reserve_of(const struct dp_trace_spec *trace, size_t i)
{
	size_t n = 1;
	while (i + n < trace->nprobes && trace->probe[i + n].reserved)
		n++;
	return n;
}

static struct dp_error *look_for(const struct dp_trace_spec *trace, struct dp_image *image, size_t i, struct dp_expansion *ret)
{
	struct dp_trace_spec one = *trace;
	one.probe = &trace->probe[i];
	one.typed = &trace->typed[i];
	one.nprobes = 1;
	one.pending = false;
	one.calls = NULL;
	return dp_expand(&one, image, ret);
}

/* All places or none: who sees returns believes to see all of them. */
static struct dp_error *settle(const struct dp_trace_spec *trace, struct dp_expansion *found, size_t i)
{
	const size_t room = reserve_of(trace, i), n = found->trace.nprobes;
	if (n > room)
		return dp_error(
		        DP_TAG_PENDING,
		        "'%s' has %zu places, and one that waits has room for %zu: name some of them one by one, or start "
		        "when the library is there",
		        trace->probe[i].spec.text, n, room);
	for (size_t k = 0; k < n; k++) {
		take_probe(&trace->probe[i + k], &found->trace.probe[k]);
		take_typed(&trace->typed[i + k], &found->trace.typed[k]);
	}
	return NULL;
}

/* A library that is there will not get more lines. Of a pattern of names another one may still come. */
static bool still_to_come(const struct dp_spec *spec, const struct dp_error *err)
{
	if (err->tag == DP_TAG_NO_SYMBOL)
		return !spec->module || dp_spec_is_pattern(spec->module);
	return err->tag == DP_TAG_NO_MODULE || err->tag == DP_TAG_INTERRUPTED || err->tag == DP_TAG_NOMEM;
}

static struct dp_error *look(const struct dp_trace_spec *trace, struct dp_image *image, size_t i)
{
	struct dp_expansion found;
	DP_TRY(look_for(trace, image, i, &found));
	struct dp_error *err = settle(trace, &found, i);
	dp_expansion_fini(&found);
	return err;
}

/* Whoever looks at it next is told why. */
static void refuse(struct dp_probe *p, struct dp_error *why)
{
	p->refused = why;
	p->waits = false;
}

void dp_pending_places(const struct dp_trace_spec *trace, struct dp_image *image, bool sure)
{
	for (size_t i = 0; i < trace->nprobes; i++) {
		struct dp_probe *p = &trace->probe[i];
		if (!p->waits || p->reserved)
			continue;
		struct dp_error *err = look(trace, image, i);
		if (err && sure && !still_to_come(&p->spec, err))
			refuse(p, err);
		else
			dp_error_destroy(err);
	}
}
