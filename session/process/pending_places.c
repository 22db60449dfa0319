/* SPDX-License-Identifier: MIT */
/*
 * Lines, markers and returns in a library that is not loaded yet. The number of their sites is unknown, so each has some probes
 * in reserve, which get their sites when the library is loaded. From then on they are like all other probes, and bound to that
 * build of the library.
 */
#include "session/trace_spec.h"
#include "session/expand/expand.h"
#include "session/process/pending.h"

#include <stdlib.h>
#include <string.h>

/* The format stays that of `to`: writers use it, and it is the same. */
static void move_typed(struct dp_typed *to, struct dp_typed *from)
{
	struct dp_typed kept = *to;
	*to = *from;
	to->form = kept.form;
	kept.form = from->form;
	*from = kept;
}

/* `to` keeps the spec's text, which writers show. */
static void move_probe(struct dp_probe *to, struct dp_probe *from)
{
	struct dp_spec typed = to->spec;
	struct dp_expr *when = to->when;
	to->when = from->when; /* it may have a conditional jump's condition as well */
	from->when = when;
	to->spec = from->spec;
	to->spec.text = dp_take(typed.text, from->spec.text);
	from->spec = typed;
	to->entry = from->entry;
	to->leaves = from->leaves;
	to->selected = true;
	to->build_id = dp_take(from->build_id, NULL);
	to->refused = dp_take(from->refused, NULL);
	to->waits = to->reserved = false;
	to->came = true;
}

static size_t reserve_of(const struct dp_trace_spec *trace, size_t i)
{
	size_t n = 1;
	while (i + n < trace->nprobes && trace->probe[i + n].reserved)
		n++;
	return n;
}

static struct dp_error *expand_one(const struct dp_trace_spec *trace, struct dp_image *image, size_t i, struct dp_expansion *ret)
{
	struct dp_trace_spec one = *trace;
	one.probe = &trace->probe[i];
	one.typed = &trace->typed[i];
	one.nprobes = 1;
	one.pending = false;
	one.calls = NULL;
	return dp_expand(&one, image, ret);
}

/* All sites or none: a user who sees returns expects all of them. */
static struct dp_error *settle(const struct dp_trace_spec *trace, struct dp_expansion *found, size_t i)
{
	const size_t room = reserve_of(trace, i), n = found->trace.nprobes;
	if (n > room)
		return dp_error(
		        DP_TAG_PENDING,
		        "'%s' has %zu sites, and a pending probe can have %zu at most: name single sites, or start dynprobe "
		        "when the library is loaded",
		        trace->probe[i].spec.text, n, room);
	for (size_t k = 0; k < n; k++) {
		move_probe(&trace->probe[i + k], &found->trace.probe[k]);
		move_typed(&trace->typed[i + k], &found->trace.typed[k]);
	}
	return NULL;
}

/* A loaded library does not get more lines. But another library that matches a pattern may still be loaded. */
static bool still_to_come(const struct dp_spec *spec, const struct dp_error *err)
{
	if (err->tag == DP_TAG_NO_SYMBOL)
		return !spec->module || dp_spec_is_pattern(spec->module);
	return err->tag == DP_TAG_NO_MODULE || err->tag == DP_TAG_INTERRUPTED || err->tag == DP_TAG_NOMEM;
}

static struct dp_error *find_sites(const struct dp_trace_spec *trace, struct dp_image *image, size_t i)
{
	struct dp_expansion found;
	DP_TRY(expand_one(trace, image, i, &found));
	struct dp_error *err = settle(trace, &found, i);
	dp_expansion_fini(&found);
	return err;
}

/* Whoever resolves the probe next gets the error. */
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
		struct dp_error *err = find_sites(trace, image, i);
		if (err && sure && !still_to_come(&p->spec, err))
			refuse(p, err);
		else
			dp_error_destroy(err);
	}
}

unsigned dp_pending_unfollow(struct dp_session *s)
{
	struct dp_session *later;
	unsigned most = 0;
	for (size_t k = 0; (later = dp_pending_later(s, k)); k++) {
		const unsigned n = dp_target_unfollow(later->target);
		most = n > most ? n : most;
	}
	return most;
}
