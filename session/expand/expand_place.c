/* SPDX-License-Identifier: MIT */
#include "probes/elf/demangle.h"
#include "probes/point/usdt/usdt.h"
#include "session/expand/expand_internal.h"
#include "session/trace_spec.h"

#include <stdlib.h>
#include <string.h>

static struct dp_error *make_room(struct dp_expander *x)
{
	struct dp_trace_spec *trace = &x->out.trace;
	if (trace->nprobes >= DP_PROBES_MAX)
		return dp_error(DP_TAG_USAGE,
		                "the patterns match more than %u probes: use narrower ones, or exclude functions with -x",
		                DP_PROBES_MAX);
	if (trace->nprobes < x->capacity)
		return NULL;
	const size_t capacity = x->capacity ? 2 * x->capacity : 64;
	struct dp_probe *probe = realloc(trace->probe, capacity * sizeof(*probe));
	trace->probe = probe ? probe : trace->probe;
	struct dp_typed *typed = realloc(trace->typed, capacity * sizeof(*typed));
	trace->typed = typed ? typed : trace->typed;
	if (!probe || !typed)
		return dp_error_nomem();
	x->capacity = capacity;
	return NULL;
}

/* Both conditions must be true. */
static struct dp_error *join_when(struct dp_typed *t, const char *when)
{
	char *both = NULL;
	if (!when)
		return NULL;
	if (asprintf(&both, t->when ? "%s && (%s)" : "%s", when, t->when) < 0)
		return dp_error_nomem();
	free(t->when);
	t->when = both;
	return NULL;
}

static bool is_of_many(const struct dp_spec *spec)
{
	return spec->call || spec->marker || dp_spec_is_pattern(spec->symbol) || dp_spec_is_pattern(spec->module);
}

/*
 * Adds a probe with its own copy of contexts and condition: a condition contains the site's address. The expansion owns the
 * probe from the start, also after an error.
 */
static struct dp_error *add_like(struct dp_expander *x, size_t from, const struct dp_expand_place *at, struct dp_probe **ret)
{
	struct dp_trace_spec *trace = &x->out.trace;
	DP_TRY(make_room(x));
	struct dp_probe *p = &trace->probe[trace->nprobes];
	struct dp_typed *t = &trace->typed[trace->nprobes];
	*p = (struct dp_probe){0};
	*t = (struct dp_typed){0};
	p->pattern = x->pattern ? (unsigned)from + 1 : 0;
	p->many = x->pattern && is_of_many(&x->from->probe[from].spec);
	trace->nprobes++;
	if (!dp_typed_copy(&x->from->typed[from], t))
		return dp_error_nomem();
	DP_TRY(dp_expand_half(t, at));
	DP_TRY(join_when(t, at->when));
	DP_TRY(dp_typed_apply(t, p));
	*ret = p;
	return NULL;
}

struct dp_error *dp_expand_copy(struct dp_expander *x, size_t from)
{
	const struct dp_probe *old = &x->from->probe[from];
	struct dp_probe *p;
	DP_TRY(add_like(x, from, &(struct dp_expand_place){0}, &p));
	p->entry = old->entry;
	p->leaves = old->leaves;
	p->name = old->name ? strdup(old->name) : dp_probe_default_name(&old->spec);
	if (old->shown && !((p->shown = strdup(old->shown)) && (p->shown_more = strdup(old->shown))))
		return dp_error_nomem();
	return p->name ? dp_spec_copy(&old->spec, &p->spec) : dp_error_nomem();
}

/* ---- one place ----------------------------------------------------------------------------------------------------- */

/* An event's name before it is made unique. */
static char *name_of(const struct dp_expand_place *at)
{
	const struct dp_function *f = at->named ? at->named : at->f;
	const unsigned long long vaddr = f->start.v - (uint64_t)dp_module_bias(f->module);
	const bool nameless = !*f->name, offset = at->point == DP_POINT_PLACE && !at->plain;
	dp_auto_free char *readable = dp_demangle_whole(f->name, false), *word = readable ? dp_expand_called(readable) : NULL;
	if (at->called)
		return dp_probe_default_name(&(struct dp_spec){.symbol = (char *)at->called});
	const struct dp_spec spec = {
	        .symbol = nameless        ? NULL
	                  : word && *word ? word
	                                  : (char *)f->name,
	        .value = nameless ? vaddr + (offset ? at->offset : 0) : at->offset,
	        .has_offset = offset,
	        .point = at->plain ? DP_POINT_PLACE : at->point,
	};
	return dp_probe_default_name(&spec);
}

struct dp_error *dp_expand_add(struct dp_expander *x, size_t from, const struct dp_expand_place *at, struct dp_probe **ret)
{
	struct dp_probe *p;
	DP_TRY(add_like(x, from, at, &p));
	p->selected = true;
	p->entry = at->point == DP_POINT_ENTRY;
	p->leaves = at->point == DP_POINT_RETURN;
	p->name = name_of(at); /* made unique when all probes are known */
	p->build_id = at->bound ? strdup(dp_module_build_id(at->f->module)) : NULL;
	if (!p->name || (at->bound && !p->build_id))
		return dp_error_nomem();
	if (ret)
		*ret = p;
	if (!at->called || at->label)
		DP_TRY(dp_expand_title(x, from, at, p));
	return dp_image_spec_of(x->image, at->f, at->offset, &p->spec);
}

struct dp_error *dp_expand_add_refused(struct dp_expander *x, size_t from, const struct dp_expand_place *at, struct dp_error *why)
{
	struct dp_probe *p;
	struct dp_error *err = dp_expand_add(x, from, at, &p);
	if (err)
		dp_error_destroy(why);
	else
		p->refused = why;
	return err;
}
