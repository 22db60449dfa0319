/* SPDX-License-Identifier: MIT */
/* Event classes: the same probe in several processes is one class. */
#include "session/recording/recording.h"

#include "probes/expr/syntax/printf_form.h"
#include "session/process/session_scope.h"

#include <stdlib.h>
#include <string.h>

static bool taken(const struct dp_trace_spec *classes, const char *name)
{
	for (size_t i = 0; i < classes->nprobes; i++)
		if (!strcmp(classes->probe[i].name, name))
			return true;
	return false;
}

/* A replaced probe has the name of its successor, and may still have records. */
static char *unique_name(const struct dp_trace_spec *classes, const char *base)
{
	char *name = strdup(base);
	for (unsigned k = 2; name && taken(classes, name); k++) {
		free(name);
		if (asprintf(&name, "%s_%u", base, k) < 0)
			return NULL;
	}
	return name;
}

static bool same_form(const struct dp_printf_form *a, const struct dp_printf_form *b)
{
	return a == b || (a && b && !strcmp(a->text, b->text));
}

/* The class of an earlier process, or the number of classes. */
static size_t find(const struct dp_recording *r, size_t process, const struct dp_manifest_probe *from,
                   const struct dp_fields *fields)
{
	const size_t n = r->classes.nprobes;
	for (size_t k = 0; k < n; k++) {
		const size_t i = (r->next + k) % n;
		if (r->class[i].user != process && !strcmp(r->class[i].base, from->name) &&
		    !strcmp(r->classes.probe[i].spec.text, from->spec) && same_form(r->classes.typed[i].form, from->typed.form) &&
		    dp_fields_alike(&r->classes.probe[i].fields, fields))
			return i;
	}
	return n;
}

static bool grow(struct dp_recording *r)
{
	const size_t n = r->classes.nprobes + 1;
	struct dp_probe *probe = realloc(r->classes.probe, n * sizeof(*probe));
	if (probe)
		r->classes.probe = probe;
	struct dp_typed *typed = realloc(r->classes.typed, n * sizeof(*typed));
	if (typed)
		r->classes.typed = typed;
	struct dp_recording_class *class = realloc(r->class, n * sizeof(*class));
	if (class)
		r->class = class;
	return probe && typed && class;
}

/* Takes `fields`. */
static struct dp_error *make(struct dp_recording *r, const struct dp_manifest_probe *from, struct dp_fields *fields)
{
	if (!grow(r)) {
		dp_fields_fini(fields);
		return dp_error_nomem();
	}
	struct dp_probe *p = &r->classes.probe[r->classes.nprobes];
	*p = (struct dp_probe){.name = unique_name(&r->classes, from->name), .fields = *fields};
	r->classes.typed[r->classes.nprobes] = (struct dp_typed){.form = from->typed.form}; /* the manifest's */
	r->class[r->classes.nprobes++] = (struct dp_recording_class){.base = from->name};
	return p->name ? dp_spec_parse(from->spec, &p->spec) : dp_error_nomem();
}

struct dp_error *dp_recording_classify(struct dp_recording *r, struct dp_recording_group *g, size_t i)
{
	const struct dp_manifest_probe *from = &g->left->manifest.probe[i];
	struct dp_fields fields = {0};
	DP_TRY(dp_scope_typed(dp_residents_image(r->process[g->process].left), from->site,
	                      from->leaves  ? DP_POINT_RETURN
	                      : from->entry ? DP_POINT_ENTRY
	                                    : DP_POINT_PLACE,
	                      &from->typed, &fields));
	g->class[i] = find(r, g->process, from, &fields);
	if (g->class[i] == r->classes.nprobes)
		DP_TRY(make(r, from, &fields));
	else
		dp_fields_fini(&fields);
	r->class[g->class[i]].user = g->process;
	r->next = g->class[i] + 1; /* the same probes mostly have the same order */
	return NULL;
}

void dp_recording_declassify(struct dp_recording *r, size_t n, size_t process)
{
	while (r->classes.nprobes > n)
		dp_probe_fini(&r->classes.probe[--r->classes.nprobes]);
	for (size_t i = 0; i < n; i++)
		if (r->class[i].user == process)
			r->class[i].user = SIZE_MAX;
}
