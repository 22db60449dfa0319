/* SPDX-License-Identifier: MIT */
/*
 * What people read instead of an event's name, which must be an identifier: a place as they type it (read+0x17, calls.c:10,
 * foo:return), a function as in its source (ns::foo). Functions of one name get what tells them apart: parameters, or the place.
 */
#include "base/path.h"
#include "probes/elf/demangle.h"
#include "probes/image/image_internal.h"
#include "probes/point/places.h"
#include "session/expand/expand_internal.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST = 400, FEW = 64 };

static const char *suffix_of(const struct dp_expand_place *at)
{
	if (at->plain || at->enters || at->entry || at->tree) /* of a whole call: it is the function's */
		return "";
	return at->point == DP_POINT_ENTRY ? ":entry" : at->point == DP_POINT_RETURN ? ":return" : "";
}

static char *title_of(const struct dp_expand_place *at, bool parameters)
{
	const struct dp_function *f = at->named ? at->named : at->f;
	char unnamed[DP_UNNAMED_MAX], offset[24] = "", *title = NULL;
	dp_auto_free char *readable = dp_demangle(f->name, parameters);
	const char *name = !*f->name ? dp_function_unnamed(f, unnamed) : readable ? readable : f->name;
	if (at->label)
		return strdup(at->label);
	if (at->point == DP_POINT_PLACE && !at->plain)
		snprintf(offset, sizeof(offset), "+0x%llx", (unsigned long long)at->offset);
	if (strlen(name) > LONGEST || asprintf(&title, "%s%s%s", name, offset, suffix_of(at)) < 0)
		return NULL;
	return title;
}

struct dp_error *dp_expand_title(struct dp_expander *x, size_t from, const struct dp_expand_place *at, struct dp_probe *p)
{
	const struct dp_probe *pattern = &x->from->probe[from];
	dp_auto_free char *own = pattern->name ? dp_probe_default_name(&pattern->spec) : NULL;
	if (pattern->name && (!own || strncmp(pattern->name, own, strlen(own)))) /* the user has named it */
		return NULL;
	p->shown = title_of(at, false);
	p->shown_more = title_of(at, true);
	return p->shown && p->shown_more ? NULL : dp_error_nomem();
}

static int by_title(const void *a, const void *b)
{
	const struct dp_probe *const *p = a, *const *q = b;
	return strcmp((*p)->shown, (*q)->shown);
}

static bool is_other_function(const struct dp_probe *p, const struct dp_probe *q)
{
	return strcmp(p->shown_more, q->shown_more) || p->spec.at.function != q->spec.at.function ||
	       p->spec.at.module != q->spec.at.module;
}

static struct dp_module *module_of(const struct dp_image *image, const struct dp_probe *p)
{
	for (size_t i = 0; p->spec.at.module && i < image->nmodules; i++)
		if (image->module[i]->id == p->spec.at.module)
			return image->module[i];
	return NULL;
}

/* The source file of the probe's function, or NULL. */
static const char *file_of(const struct dp_image *image, const struct dp_probe *p)
{
	struct dp_module *m = module_of(image, p);
	const char *file;
	int line;
	return m && dp_place_source(m, dp_module_addr(m, p->spec.at.function), &file, &line) ? dp_path_last(file) : NULL;
}

/* Does every function of a few have a source file of another name? */
static bool files_differ(const struct dp_image *image, struct dp_probe **p, size_t n)
{
	for (size_t i = 0; n <= FEW && i < n; i++) {
		const char *file = file_of(image, p[i]);
		for (size_t k = 0; k < i && file; k++) {
			const char *other = is_other_function(p[k], p[i]) ? file_of(image, p[k]) : NULL;
			file = other && !strcmp(other, file) ? NULL : file;
		}
		if (!file)
			return false;
	}
	return n <= FEW;
}

/* A mangled name would only repeat the title. */
static char *with_place(const struct dp_image *image, const struct dp_probe *p, bool files)
{
	const struct dp_spec *spec = &p->spec;
	dp_auto_free char *readable = spec->symbol && spec->at.module ? dp_demangle(spec->symbol, false) : NULL;
	char *text;
	const int n =
	        files      ? asprintf(&text, "%s (%s)", p->shown_more, file_of(image, p))
	        : readable ? asprintf(&text, "%s (%s!0x%llx)", p->shown_more, spec->module, (unsigned long long)spec->at.function)
	                   : asprintf(&text, "%s (%s)", p->shown_more, spec->text);
	return n < 0 ? NULL : text;
}

/* Sites of one function may share a title; functions may not. */
static bool tell_apart(const struct dp_image *image, struct dp_probe **p, size_t n)
{
	bool several = false, same = false;
	for (size_t i = 1; i < n; i++) {
		several |= is_other_function(p[0], p[i]);
		same |= is_other_function(p[0], p[i]) && !strcmp(p[0]->shown_more, p[i]->shown_more);
	}
	const bool files = same && files_differ(image, p, n);
	for (size_t i = 0; several && i < n; i++) {
		char *longer = NULL;
		if (same && !(longer = with_place(image, p[i], files)))
			return false;
		free(p[i]->shown);
		p[i]->shown = same ? longer : dp_take(p[i]->shown_more, NULL);
	}
	return true;
}

struct dp_error *dp_expand_titles_finish(struct dp_trace_spec *trace, const struct dp_image *image)
{
	dp_auto_free struct dp_probe **p = calloc(trace->nprobes + 1, sizeof(*p));
	size_t n = 0;
	bool ok = p;
	for (size_t i = 0; ok && i < trace->nprobes; i++)
		if (trace->probe[i].shown)
			p[n++] = &trace->probe[i];
	if (ok && n)
		qsort(p, n, sizeof(*p), by_title);
	for (size_t i = 0, end; ok && i < n; i = end) {
		for (end = i + 1; end < n && !strcmp(p[end]->shown, p[i]->shown);)
			end++;
		if (end > i + 1)
			ok = tell_apart(image, p + i, end - i);
	}
	for (size_t i = 0; ok && i < n; i++)
		if (!strcmp(p[i]->shown, p[i]->name))
			p[i]->shown = (free(p[i]->shown), NULL);
	return ok ? NULL : dp_error_nomem();
}
