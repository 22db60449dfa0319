/* SPDX-License-Identifier: MIT */
#include "session/process/session_scope.h"
#include "base/cleanup.h"
#include "probes/elf/demangle.h"
#include "probes/expr/scope/scope.h"
#include "probes/expr/syntax/printf_form.h"
#include "probes/point/usdt/usdt.h"

#include <string.h>

static bool names_fields(const struct dp_typed *t)
{
	for (size_t i = 0; i < t->ncontexts; i++)
		if (!dp_scope_is_fixed(t->context[i]))
			return true;
	return t->form;
}

/* ---- one place ----------------------------------------------------------------------------------------------------- */

struct place {
	struct dp_scope *scope;
	struct dp_usdt_arg usdt[DP_USDT_MAX_ARGS];
};

static struct dp_error *open_place(struct dp_image *image, struct dp_scope_at at, const struct dp_typed *typed, struct place *ret)
{
	const enum dp_point point = at.point;
	at.inlined = typed->inlined;
	at.call = typed->call.is ? &typed->call : NULL;
	at.site.module = dp_image_module_at(image, at.site.addr);
	dp_image_function_at(image, at.site.addr, &at.site.function);
	const struct dp_usdt *marker =
	        at.site.module && point == DP_POINT_PLACE ? dp_module_marker_at(at.site.module, at.site.addr) : NULL;
	if (marker) {
		at.nusdt = dp_usdt_args(at.site.module, marker, ret->usdt);
		at.usdt = ret->usdt;
	}
	return dp_scope_create(image, &at, &ret->scope);
}

/* Stores which field argument `i` of the format is. The fields from `before` on were made from it. */
static struct dp_error *bind_argument(struct dp_printf_form *form, size_t i, const struct dp_fields *fields, size_t before)
{
	form->field[i] = (unsigned)before;
	for (size_t k = 0; k < i && fields->n == before; k++)
		if (!strcmp(form->arg[k], form->arg[i])) {
			form->field[i] = form->field[k];
			return dp_printf_check(form, i, &fields->field[form->field[i]]);
		}
	if (fields->n == before)
		return dp_error(DP_TAG_SYNTAX, "the format has the value '%s' twice: name one of them, x=%s", form->arg[i],
		                form->arg[i]);
	if (fields->n != before + 1)
		return dp_error(DP_TAG_SYNTAX,
		                "'%s' is not a single value: pass its members or elements to the format one by one",
		                form->arg[i]);
	return dp_printf_check(form, i, &fields->field[before]);
}

static struct dp_error *make_fields(struct dp_scope *scope, const struct dp_typed *typed, struct dp_fields *ret)
{
	struct dp_fields fields = {0};
	struct dp_error *err = NULL;
	for (size_t i = 0; !err && i < typed->ncontexts; i++) {
		const size_t before = fields.n;
		err = dp_scope_fields(scope, typed->context[i], &fields);
		if (!err && typed->form && i < typed->form->n)
			err = bind_argument(typed->form, i, &fields, before);
	}
	if (err)
		dp_fields_fini(&fields);
	else
		*ret = fields;
	return err;
}

struct dp_error *dp_scope_typed(struct dp_image *image, uint64_t addr, enum dp_point point, const struct dp_typed *typed,
                                struct dp_fields *ret)
{
	struct place place = {0};
	DP_TRY(open_place(image, (struct dp_scope_at){.site = {.addr = dp_addr_of(addr)}, .point = point}, typed, &place));
	struct dp_error *err = make_fields(place.scope, typed, ret);
	dp_scope_destroy(place.scope);
	return err;
}

/* ---- a session's probes ---------------------------------------------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* Reports a requested value that is not available at the site. For `args`, the events say so. */
static void warn(const struct dp_session *s, const struct dp_probe *p, const struct dp_typed *typed)
{
	for (size_t i = 0; i < typed->ncontexts && dp_trace_logs(s->trace, DP_LOG_INFO); i++)
		for (size_t k = 0; k < p->fields.n; k++) {
			const struct dp_field *f = &p->fields.field[k];
			if (f->source != DP_SRC_NONE || !same_text(f->label ? f->label : f->name, typed->context[i]))
				continue;
			dp_trace_log(s->trace, DP_LOG_INFO, "%s: '%s' is not available there: %s", dp_probe_shown(p),
			             typed->context[i], f->absent);
		}
}

static bool has_context(const struct dp_typed *typed, const char *context)
{
	for (size_t i = 0; i < typed->ncontexts; i++)
		if (!strcmp(typed->context[i], context))
			return true;
	return false;
}

enum end { END_NOWHERE, END_ELSEWHERE, END_HERE };

/* Is probe `k`, which records `context`, the end of the call that probe `i` is in, or of another? */
static enum end end_at(const struct dp_session *s, size_t i, size_t k, const char *context)
{
	const struct dp_trace_spec *trace = s->trace;
	struct dp_image *image = dp_target_image(s->target);
	struct dp_function f, g;
	if (!has_context(&trace->typed[k], context) || !(trace->probe[k].leaves || trace->typed[k].call.exit))
		return END_NOWHERE;
	if (trace->typed[i].call.is || s->place[k].pending)
		return END_HERE;
	return dp_image_function_at(image, dp_addr_of(s->place[i].addr), &f) &&
	                       dp_image_function_at(image, dp_addr_of(s->place[k].addr), &g) && f.start.v == g.start.v
	               ? END_HERE
	               : END_ELSEWHERE;
}

static enum end find_end(const struct dp_session *s, size_t i, const char *context)
{
	enum end found = END_NOWHERE;
	for (size_t k = 0; k < s->trace->nprobes && found != END_HERE; k++) {
		const enum end one = end_at(s, i, k, context);
		found = one > found ? one : found;
	}
	return found;
}

static void drop_context(struct dp_typed *typed, const char *context)
{
	size_t kept = 0;
	for (size_t i = 0; i < typed->ncontexts; i++)
		if (strcmp(typed->context[i], context))
			typed->context[kept++] = typed->context[i];
		else
			free(typed->context[i]);
	typed->ncontexts = kept;
}

/* Refuses the value, or if `s` is not NULL only says that it is not recorded. */
static struct dp_error *no_end(const struct dp_session *s, const char *label, const struct dp_spec *spec, const char *why)
{
	const bool result = !strcmp(label, "retval"), duration = !strcmp(label, "duration");
	dp_auto_free char *place = dp_demangle_text(spec->text),
	                  *name = dp_demangle_text(spec->symbol ? spec->symbol : "FUNCTION");
	if (!place || !name)
		return dp_error_nomem();
	struct dp_error *err = dp_error(DP_TAG_NO_VALUE, "-t %s at '%s': %s; for this function: --return '%s' -t %s", label,
	                                place, why, name, label);
	if (!s)
		return dp_error_advise(err, result     ? "record it where the function returns: --return FUNCTION -t retval"
		                            : duration ? "record it where the function returns: --return FUNCTION -t duration"
		                                       : "record it where the function returns: --return FUNCTION -t VALUE");
	dp_trace_log(s->trace, DP_LOG_INFO, "%s", err->message);
	return dp_error_destroy(err);
}

/*
 * A value that the probe can never have is a mistake, not a field without a value. But one -t may be for entries and returns:
 * then the entries go without (*dropped).
 */
static struct dp_error *check_results(const struct dp_session *s, size_t probe, bool *dropped)
{
	const struct dp_fields *fields = &s->place[probe].fields;
	struct dp_typed *typed = &s->trace->typed[probe];
	for (size_t i = 0; i < fields->n; i++) {
		const struct dp_field *f = &fields->field[i];
		const char *label = f->label ? f->label : f->name;
		if (f->source != DP_SRC_NONE || !dp_absent_before_return(f->absent) || !has_context(typed, label))
			continue;
		const enum end end = find_end(s, probe, label);
		if (end != END_HERE)
			DP_TRY(no_end(end == END_ELSEWHERE ? s : NULL, label, &s->trace->probe[probe].spec, f->absent));
		if (typed->form || typed->call.is)
			continue;
		drop_context(typed, label);
		*dropped = true;
	}
	return NULL;
}

static struct dp_error *bind_fields(struct dp_session *s, size_t i, struct dp_scope *scope)
{
	const struct dp_typed *typed = &s->trace->typed[i];
	struct dp_probe *p = &s->trace->probe[i];
	struct dp_place *place = &s->place[i];
	bool dropped = false;
	DP_TRY(make_fields(scope, typed, &place->fields));
	place->bound_fields = true;
	DP_TRY(check_results(s, i, &dropped));
	if (dropped) {
		dp_fields_fini(&place->fields);
		DP_TRY(make_fields(scope, typed, &place->fields));
	}
	if (!p->bound) {
		struct dp_fields layout = {0};
		DP_TRY(make_fields(scope, typed, &layout));
		dp_fields_fini(&p->fields);
		p->fields = layout;
		p->bound = true;
		warn(s, p, typed);
	}
	if (dp_fields_alike(&p->fields, &place->fields))
		return NULL;
	return dp_error(DP_TAG_NO_VALUE,
	                "'%s' has other fields here than in the first process: probe this process in a run of its own",
	                dp_probe_shown(p));
}

static struct dp_error *open_probe(struct dp_session *s, size_t i, struct place *ret)
{
	const struct dp_probe *p = &s->trace->probe[i];
	const struct dp_scope_at at = {
	        .site = {.addr = dp_addr_of(s->place[i].addr)},
	        .point = p->leaves  ? DP_POINT_RETURN
	                 : p->entry ? DP_POINT_ENTRY
	                            : DP_POINT_PLACE,
	        .no_memory = dp_target_filtered(s->target),
	};
	return open_place(dp_target_image(s->target), at, &s->trace->typed[i], ret);
}

struct dp_error *dp_session_expr(struct dp_session *s, size_t i, const char *text, struct dp_expr **ret)
{
	struct place at = {0};
	DP_TRY(open_probe(s, i, &at));
	struct dp_error *err = dp_scope_expr(at.scope, text, ret);
	dp_scope_destroy(at.scope);
	return err;
}

struct dp_error *dp_session_fields(struct dp_session *s, size_t i, const char *context, struct dp_fields *ret)
{
	struct place at = {0};
	DP_TRY(open_probe(s, i, &at));
	struct dp_error *err = dp_scope_fields(at.scope, context, ret);
	dp_scope_destroy(at.scope);
	return err;
}

static struct dp_error *bind(struct dp_session *s, size_t i)
{
	const struct dp_typed *typed = &s->trace->typed[i];
	struct dp_probe *p = &s->trace->probe[i];
	struct dp_place *place = &s->place[i];
	struct place at = {0};
	DP_TRY(open_probe(s, i, &at));
	struct dp_error *err = names_fields(typed) ? bind_fields(s, i, at.scope) : NULL;
	if (!err && typed->when) {
		err = dp_scope_condition(at.scope, typed->when, &place->when);
		/* The session's planning asks whether p->when may fail. */
		if (!err && !p->when)
			err = dp_scope_condition(at.scope, typed->when, &p->when);
	}
	dp_scope_destroy(at.scope);
	return err;
}

static bool has_work(const struct dp_typed *typed)
{
	return names_fields(typed) || (typed->when && dp_scope_has_names(typed->when));
}

struct dp_error *dp_session_scope(struct dp_session *s)
{
	for (size_t i = 0; i < s->trace->nprobes; i++) {
		const struct dp_probe *p = &s->trace->probe[i];
		struct dp_place *place = &s->place[i];
		/* A pending probe is compiled when its library is loaded. */
		if (place->refused || place->pending || !has_work(&s->trace->typed[i]))
			continue;
		DP_TRY(dp_trace_step(s->trace, "looking up what to record", i, s->trace->nprobes));
		struct dp_error *err = bind(s, i);
		if (err && p->selected)
			place->refused = err;
		else if (err)
			return dp_error_wrap(err, "probe '%s' in %d (%s)", p->spec.text, dp_target_pid(s->target),
			                     dp_target_comm(s->target));
	}
	return NULL;
}

void dp_session_scope_late(struct dp_session *later, void (*known)(unsigned probe, void *data), void *data)
{
	for (size_t i = 0; i < later->trace->nprobes; i++) {
		const struct dp_probe *p = &later->trace->probe[i];
		struct dp_place *place = &later->place[i];
		const bool was_bound = p->bound;
		if (place->refused || place->pending || !has_work(&later->trace->typed[i]))
			continue;
		place->refused = bind(later, i);
		if (p->bound && !was_bound)
			known((unsigned)i, data);
	}
}
