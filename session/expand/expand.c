/* SPDX-License-Identifier: MIT */
#include "probes/point/select/more.h"
#include "session/code/function_points.h"
#include "session/expand/expand_internal.h"
#include "session/trace_spec.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define NOTES 3u /* functions with unknown exits or code that get a note; further ones are counted */

/* ---- one function -------------------------------------------------------------------------------------------------- */

static void __attribute__((format(printf, 2, 3))) note(struct dp_expander *x, const char *fmt, ...)
{
	va_list args;
	char text[1024];
	if (x->notes++ >= NOTES)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	dp_trace_log(x->from, DP_LOG_INFO, "%s", text);
}

static void note_points(struct dp_expander *x, const struct dp_function *f, const struct dp_points *points)
{
	const char *name = *f->name ? f->name : "the function";
	size_t unsure = 0;
	uint64_t first = 0;
	char more[48] = "";
	for (size_t i = 0; i < points->nexits; i++)
		if (points->exit[i].kind == DP_EXIT_UNSURE && !unsure++)
			first = points->exit[i].addr;
	if (unsure > 1)
		snprintf(more, sizeof(more), " and %zu others", unsure - 1);
	if (unsure)
		note(x, "%s may also return by the indirect jump at +0x%llx%s, which is not probed", name,
		     (unsigned long long)(first - f->start.v), more);
	if (points->undecodable)
		note(x, "%s: the bytes at +0x%llx are not an instruction; the code after them is not probed", name,
		     (unsigned long long)(points->undecodable - f->start.v));
}

/* The exits of a fragment are named after the function. */
static struct dp_error *add_exit(struct dp_expander *x, size_t from, const struct dp_function_points *fp, size_t i)
{
	const struct dp_exit *exit = &fp->points.exit[i];
	const struct dp_function *part = dp_function_part(fp, exit->addr);
	const struct dp_expand_place at = {
	        .f = part,
	        .named = &fp->part[0],
	        .offset = exit->addr - part->start.v,
	        .point = DP_POINT_RETURN,
	        .bound = true,
	        .when = exit->when,
	        .entry = x->entry,
	        .early = x->early,
	};
	return exit->kind == DP_EXIT_UNSURE ? NULL : dp_expand_add(x, from, &at, NULL);
}

static struct dp_error *add_insn(struct dp_expander *x, size_t from, const struct dp_function_points *fp, size_t i)
{
	const struct dp_start *insn = &fp->points.insn[i];
	const struct dp_function *part = dp_function_part(fp, insn->addr);
	const struct dp_expand_place at = {.f = part, .offset = insn->addr - part->start.v, .bound = true};
	if (!insn->entered)
		return dp_expand_add(x, from, &at, NULL);
	return dp_expand_add_refused(x, from, &at,
	                             dp_error(DP_TAG_NOT_BOUNDARY,
	                                      "%s+0x%llx: a branch of the function leads into the middle of the instruction",
	                                      part->name, (unsigned long long)at.offset));
}

/* The function's own exits come before those of its fragments, whatever their addresses. */
static struct dp_error *add_exits(struct dp_expander *x, size_t from, const struct dp_function_points *fp)
{
	for (size_t k = 0; k < fp->nparts; k++)
		for (size_t i = 0; i < fp->points.nexits; i++)
			if (dp_function_part(fp, fp->points.exit[i].addr) == &fp->part[k])
				DP_TRY(add_exit(x, from, fp, i));
	return NULL;
}

static struct dp_error *add_insns(struct dp_expander *x, size_t from, const struct dp_function_points *fp)
{
	for (size_t k = 0; k < fp->nparts; k++)
		for (size_t i = 0; i < fp->points.ninsns; i++)
			if (dp_function_part(fp, fp->points.insn[i].addr) == &fp->part[k])
				DP_TRY(add_insn(x, from, fp, i));
	return NULL;
}

static bool returns(const struct dp_points *points)
{
	for (size_t i = 0; i < points->nexits; i++)
		if (points->exit[i].kind != DP_EXIT_UNSURE)
			return true;
	return false;
}

static struct dp_error *add_points(struct dp_expander *x, size_t from, enum dp_point point, const struct dp_function_points *fp)
{
	const struct dp_expand_place at = {.f = &fp->part[0], .point = DP_POINT_RETURN};
	const size_t before = x->out.trace.nprobes;
	note_points(x, &fp->part[0], &fp->points);
	if (point == DP_POINT_ALL)
		DP_TRY(add_insns(x, from, fp));
	x->early = returns(&fp->points) ? dp_expand_early(x, from, fp) : 0;
	if (x->early)
		DP_TRY(dp_expand_entry(x, from, &fp->part[0], &x->entry));
	DP_TRY(add_exits(x, from, fp));
	x->entry = 0;
	if (x->out.trace.nprobes != before)
		return NULL;
	return dp_expand_add_refused(
	        x, from, &at,
	        dp_error(DP_TAG_NO_RETURN,
	                 fp->points.nexits
	                         ? "'%s' returns only by indirect jumps, and their targets are unknown"
	                         : "'%s' has no ret and no tail jump: it never returns, or continues in the code after it",
	                 fp->part[0].name));
}

/* Adds one probe: at the entry, or at the pattern's offset. The function may be found in other builds as well. */
static struct dp_error *add_one(struct dp_expander *x, size_t from, enum dp_point point, const struct dp_function *f)
{
	const struct dp_probe *pattern = &x->from->probe[from];
	const struct dp_expand_place at = {
	        .f = f,
	        .offset = point == DP_POINT_PLACE ? pattern->spec.value : 0,
	        .point = point,
	        .plain = point == DP_POINT_PLACE ? !pattern->spec.has_offset : pattern->spec.point == DP_POINT_PLACE,
	};
	return dp_expand_add(x, from, &at, NULL);
}

static struct dp_error *add_function(struct dp_expander *x, size_t from, const struct dp_selected *s)
{
	const struct dp_probe *pattern = &x->from->probe[from];
	const enum dp_point point = pattern->entry ? DP_POINT_ENTRY : pattern->spec.point;
	struct dp_function_points fp;
	if (s->inside)
		return dp_expand_inside(x, from, s);
	if (s->ifunc) {
		const struct dp_expand_place at = {.f = &s->function, .point = point};
		return dp_expand_add_refused(
		        x, from, &at,
		        dp_error(DP_TAG_NO_SYMBOL, "'%s' is an IFUNC: it only chooses the function that calls of this name reach",
		                 s->function.name));
	}
	if (x->from->asked.tree && point == DP_POINT_RETURN)
		return dp_expand_tree(x, from, &s->function);
	if (point == DP_POINT_ENTRY || point == DP_POINT_PLACE)
		return add_one(x, from, point, &s->function);
	if (point == DP_POINT_ALL)
		DP_TRY(add_one(x, from, DP_POINT_ENTRY, &s->function));
	struct dp_error *err = dp_function_points(x->image, x->view, &s->function, &fp);
	if (err) {
		const struct dp_expand_place at = {.f = &s->function, .point = DP_POINT_RETURN};
		return dp_expand_add_refused(x, from, &at, err);
	}
	err = add_points(x, from, point, &fp);
	dp_function_points_fini(&fp);
	return err;
}

/* ---- names, and the whole ------------------------------------------------------------------------------------------ */

/* The user's name becomes the name of the only probe, or the prefix of all names. */
static struct dp_error *name_pattern(struct dp_expander *x, const char *given, size_t first)
{
	struct dp_trace_spec *trace = &x->out.trace;
	size_t events = 0;
	for (size_t i = first; i < trace->nprobes; i++)
		events += !trace->typed[i].enters;
	for (size_t i = first; i < trace->nprobes; i++) {
		dp_auto_free char *base = dp_take(trace->probe[i].name, NULL), *with = NULL;
		if (given && events == 1 && !trace->typed[i].enters) {
			trace->probe[i].name = strdup(given);
			if (!trace->probe[i].name)
				return dp_error_nomem();
			continue;
		}
		if (given &&
		    asprintf(&with, "%s_%.*s", given, (int)(190 - (strlen(given) < 189 ? strlen(given) : 189)), base) < 0)
			return dp_error_nomem();
		DP_TRY(dp_names_make(&x->names, given ? with : base, &trace->probe[i].name));
	}
	return NULL;
}

#define RESERVE                                                                                                                  \
	64u /* probes for the lines, markers or returns of a library that is loaded later; unused ones have a name only          \
	     */

/* Not patterns of functions: they may stand for any number of probes. */
static bool can_wait(const struct dp_expander *x, size_t from, const struct dp_error *err)
{
	const struct dp_spec *spec = &x->from->probe[from].spec;
	if (!x->from->pending || (err->tag != DP_TAG_NO_MODULE && (err->tag != DP_TAG_NO_SYMBOL || spec->module)))
		return false;
	return dp_spec_is_source(spec) ||
	       (spec->point == DP_POINT_RETURN && !dp_spec_is_pattern(spec->symbol) && !dp_spec_is_pattern(spec->module));
}

static struct dp_error *cannot_wait(const struct dp_expander *x, const struct dp_spec *spec, struct dp_error *err)
{
	if (!x->from->pending || (err->tag != DP_TAG_NO_MODULE && err->tag != DP_TAG_NO_SYMBOL))
		return err;
	return dp_error_wrap(err,
	                     "--pending cannot wait for '%s': patterns and whole functions are looked up when the run begins",
	                     spec->text);
}

/* Adds the probes that wait for the library. Those that get no site are not shown. */
static struct dp_error *reserve(struct dp_expander *x, size_t from)
{
	for (unsigned k = 0; k < RESERVE; k++) {
		DP_TRY(dp_expand_copy(x, from));
		struct dp_probe *p = &x->out.trace.probe[x->out.trace.nprobes - 1];
		p->waits = true;
		p->reserved = k > 0;
		if (!k && x->from->probe[from].name)
			continue;
		dp_auto_free char *base = dp_take(p->name, NULL);
		DP_TRY(dp_names_make(&x->names, base, &p->name));
	}
	return NULL;
}

/* If there is no such symbol, the name may be a C++ or Rust name: then it stands for all functions of this name. */
static struct dp_error *select_functions(struct dp_expander *x, const struct dp_spec *spec, struct dp_selection *ret)
{
	struct dp_selection more = {0};
	bool known = true;
	struct dp_error *err = dp_image_select(x->image, spec, x->from->except.item, x->from->except.n, ret);
	if (!err || err->tag != DP_TAG_NO_SYMBOL || !spec->symbol || dp_spec_is_source(spec))
		return err;
	if (dp_spec_is_pattern(spec->symbol) && x->from->except.n) /* all that it means may be excluded */
		return err;
	struct dp_error *failed = dp_image_more(x->image, spec, false, &known, &more);
	if (failed || known || !more.n) {
		dp_error_destroy(failed);
		dp_selection_fini(&more);
		return err;
	}
	dp_error_destroy(err);
	*ret = more;
	return NULL;
}

/* A Go name can look like a pattern: it has stars and brackets. */
static bool is_name(const struct dp_spec *spec, const struct dp_selection *found)
{
	return spec->point != DP_POINT_ALL && !dp_spec_is_pattern(spec->module) && found->n == 1 && spec->symbol &&
	       !strcmp(found->item[0].function.name, spec->symbol);
}

static struct dp_error *expand_one(struct dp_expander *x, size_t from)
{
	const struct dp_probe *p = &x->from->probe[from];
	struct dp_selection found;
	const size_t first = x->out.trace.nprobes;
	x->pattern = dp_spec_has_pattern(&p->spec);
	if (!dp_spec_selects(&p->spec))
		return dp_expand_plain(x, from, add_function);
	if (p->spec.call) {
		DP_TRY(dp_expand_calls(x, from));
		x->out.matched += x->out.trace.nprobes - first;
		return name_pattern(x, p->name, first);
	}
	struct dp_error *unknown = select_functions(x, &p->spec, &found);
	if (unknown && can_wait(x, from, unknown)) {
		dp_error_destroy(unknown);
		return reserve(x, from);
	}
	if (unknown)
		return cannot_wait(x, &p->spec, dp_image_explain_unknown(x->image, &p->spec, unknown));
	x->pattern = x->pattern && !is_name(&p->spec, &found);
	struct dp_error *err = NULL;
	for (size_t i = 0; !err && i < found.n; i++) {
		err = dp_trace_step(x->from, "matching functions", i, found.n);
		if (!err)
			err = add_function(x, from, &found.item[i]);
	}
	dp_selection_fini(&found);
	x->out.matched += x->out.trace.nprobes - first;
	return err ? err : name_pattern(x, p->name, first);
}

static struct dp_error *expand_all(struct dp_expander *x)
{
	bool fresh;
	for (size_t i = 0; i < x->from->nprobes; i++)
		if (x->from->probe[i].name)
			DP_TRY(dp_names_add(&x->names, x->from->probe[i].name, &fresh));
	DP_TRY(dp_code_view_create(x->image, &x->view));
	for (size_t i = 0; i < x->from->nprobes; i++)
		DP_TRY(expand_one(x, i));
	return dp_expand_titles_finish(&x->out.trace, x->image);
}

static void log_matches(const struct dp_expander *x)
{
	if (x->notes > NOTES)
		dp_trace_log(x->from, DP_LOG_INFO, "the same for %zu more functions", x->notes - NOTES);
	if (x->functions)
		dp_trace_log(x->from, DP_LOG_INFO, "measuring %zu function%s, with %zu probes at their entries and returns",
		             x->functions, x->functions == 1 ? "" : "s", x->out.trace.nprobes);
	else if (x->out.matched)
		dp_trace_log(x->from, DP_LOG_INFO, "matched %zu probe%s", x->out.matched, x->out.matched == 1 ? "" : "s");
}

bool dp_expands(const struct dp_trace_spec *trace)
{
	for (size_t i = 0; i < trace->nprobes; i++)
		if (dp_spec_selects(&trace->probe[i].spec) || dp_expand_is_plain(&trace->probe[i]))
			return true;
	return false;
}

struct dp_error *dp_expand(const struct dp_trace_spec *trace, struct dp_image *image, struct dp_expansion *ret)
{
	struct dp_expander x = {.from = trace, .image = image, .out = {.trace = *trace}};
	x.out.trace.probe = NULL;
	x.out.trace.typed = NULL;
	x.out.trace.nprobes = 0;
	struct dp_error *err = expand_all(&x);
	dp_expand_tree_fini(&x);
	dp_names_fini(&x.names);
	dp_code_view_destroy(x.view);
	if (!err)
		log_matches(&x);
	if (err)
		dp_expansion_fini(&x.out);
	else
		*ret = x.out;
	return err;
}

void dp_expansion_fini(struct dp_expansion *e)
{
	for (size_t i = 0; i < e->trace.nprobes; i++) {
		dp_probe_fini(&e->trace.probe[i]);
		dp_typed_fini(&e->trace.typed[i]);
	}
	free(e->trace.probe);
	free(e->trace.typed);
	*e = (struct dp_expansion){0};
}
