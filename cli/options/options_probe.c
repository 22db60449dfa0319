/* SPDX-License-Identifier: MIT */
/*
 * Which probe an option applies to. --name: the next probe (at the end: the last one). -t and --when: the probes directly before
 * them, since the last -t or --when; before the first probe: all probes.
 */
#include "cli/options/options_table.h"

#include "probes/expr/scope/scope.h"
#include "probes/expr/syntax/printf_form.h"
#include "probes/point/usdt/usdt.h"
#include "session/names.h"

#include <stdlib.h>
#include <string.h>

static struct dp_error *make_room(struct dp_probe_args *a)
{
	if (a->n >= DP_PROBES_MAX)
		return dp_error(DP_TAG_USAGE, "more than %u probes", DP_PROBES_MAX);
	if (a->n & (a->n - 1))
		return NULL;
	const size_t room = a->n ? 2 * a->n : 1;
	struct dp_probe *grown = realloc(a->probe, room * sizeof(*grown));
	a->probe = grown ? grown : a->probe;
	struct dp_typed *typed = realloc(a->typed, room * sizeof(*typed));
	a->typed = typed ? typed : a->typed;
	return grown && typed ? NULL : dp_error_nomem();
}

/* --function means the entry and --return the returns; a spec that says otherwise is refused. */
static struct dp_error *set_point(struct dp_probe *p, enum dp_point point)
{
	const char *option = point == DP_POINT_ENTRY ? "--function" : "--return";
	struct dp_spec *s = &p->spec;
	if (s->point != DP_POINT_PLACE && point != DP_POINT_PLACE && s->point != point)
		return dp_error(DP_TAG_USAGE, "%s '%s' contradicts itself; give it to --probe", option, s->text);
	if (point == DP_POINT_RETURN && (s->has_line || s->provider || s->call))
		return dp_error(DP_TAG_USAGE, "--return '%s': name a whole function", s->text);
	if (point == DP_POINT_RETURN && s->has_offset)
		return dp_error(DP_TAG_USAGE, "--return '%s': name a whole function, without an offset", s->text);
	if (point == DP_POINT_RETURN)
		s->point = point;
	p->entry = point == DP_POINT_ENTRY || s->point == DP_POINT_ENTRY;
	return NULL;
}

typedef struct dp_error *parse_spec(const char *text, struct dp_spec *ret);

static struct dp_error *add_probe(struct dp_probe_args *a, const char *spec, enum dp_point point, parse_spec *parse)
{
	DP_TRY(make_room(a));
	struct dp_probe *p = &a->probe[a->n];
	a->typed[a->n] = (struct dp_typed){0};
	*p = (struct dp_probe){0};
	DP_TRY(parse(spec, &p->spec));
	struct dp_error *err = set_point(p, point);
	if (err) {
		dp_probe_fini(p);
		return err;
	}
	p->name = dp_take(a->pending_name, NULL);
	if (a->group_closed)
		a->group = a->n;
	a->group_closed = false;
	a->n++;
	return NULL;
}

static struct dp_error *add_context(struct dp_probe_args *a, size_t i, const char *context);

/* A spec, optionally with a format and its arguments, which become the probe's first fields. */
static struct dp_error *add_formatted(struct dp_probe_args *a, const char *text, enum dp_point point, parse_spec *parse)
{
	const size_t begin = dp_printf_begins(text);
	struct dp_printf_form *form = NULL;
	if (!begin)
		return add_probe(a, text, point, parse);
	size_t end = begin;
	while (end && strchr(" \t", text[end - 1]))
		end--;
	dp_auto_free char *spec = strndup(text, end);
	if (!spec)
		return dp_error_nomem();
	DP_TRY(dp_printf_parse(text + begin, &form));
	struct dp_error *err = add_probe(a, spec, point, parse);
	if (err) {
		dp_printf_destroy(form);
		return err;
	}
	a->typed[a->n - 1].form = form;
	for (size_t i = 0; !err && i < form->n; i++)
		err = add_context(a, a->n - 1, form->arg[i]);
	return err;
}

/* A line of a file, without blanks around it and without a comment: # at the start or after a blank. */
static struct dp_error *add_line(struct dp_probe_args *a, char *line, enum dp_point point, parse_spec *parse)
{
	char *end = line;
	line += strspn(line, " \t\r\n");
	for (end = line; *end && !(*end == '#' && (end == line || strchr(" \t", end[-1])));)
		end++;
	while (end > line && strchr(" \t\r\n", end[-1]))
		end--;
	*end = 0;
	return *line ? add_formatted(a, line, point, parse) : NULL;
}

static struct dp_error *add_file(struct dp_probe_args *a, const char *path, enum dp_point point, parse_spec *parse)
{
	dp_auto_fclose FILE *file = fopen(path, "re");
	dp_auto_free char *line = NULL;
	size_t size = 0;
	if (!file)
		return dp_error_sys(DP_TAG_USAGE, "cannot read the list of probes '%s'", path);
	for (unsigned number = 1; getline(&line, &size, file) >= 0; number++) {
		struct dp_error *err = add_line(a, line, point, parse);
		if (err)
			return dp_error_wrap(err, "%s, line %u", path, number);
	}
	return ferror(file) ? dp_error_sys(DP_TAG_USAGE, "cannot read the list of probes '%s'", path) : NULL;
}

static struct dp_error *add(struct dp_parser *p, const char *text, parse_spec *parse)
{
	const enum dp_point point = (enum dp_point)p->row->value;
	return *text == '@' ? add_file(&p->probes, text + 1, point, parse) : add_formatted(&p->probes, text, point, parse);
}

struct dp_error *dp_option_probe(struct dp_parser *p, const char *spec)
{
	return add(p, spec, dp_spec_parse);
}

struct dp_error *dp_option_calls(struct dp_parser *p, const char *spec)
{
	const size_t before = p->probes.n;
	DP_TRY(add(p, spec, dp_spec_parse));
	for (size_t i = before; i < p->probes.n; i++)
		p->probes.typed[i].calls = true;
	p->o.trace.asked.tree = true;
	return NULL;
}

/* The entry of a function, unless the spec says where in it. */
static bool is_function(const struct dp_spec *s)
{
	return s->symbol && !s->has_offset && s->point == DP_POINT_PLACE && !dp_spec_is_source(s);
}

struct dp_error *dp_option_all(struct dp_parser *p, const char *spec)
{
	const size_t before = p->probes.n;
	DP_TRY(add(p, spec, dp_spec_parse));
	for (size_t i = before; i < p->probes.n; i++) {
		struct dp_probe *probe = &p->probes.probe[i];
		probe->entry |= is_function(&probe->spec);
	}
	p->o.trace.all = true;
	return NULL;
}

struct dp_error *dp_option_usdt(struct dp_parser *p, const char *marker)
{
	return add(p, marker, dp_spec_parse_usdt);
}

/* A list is a probe for each, as strace -e has it. */
struct dp_error *dp_option_syscall(struct dp_parser *p, const char *name)
{
	char one[128];
	for (size_t n; n = strcspn(name, ","), name[n]; name += n + 1) {
		snprintf(one, sizeof(one), "%.*s", (int)n, name);
		if (n >= sizeof(one))
			break; /* refused as a whole */
		DP_TRY(add(p, one, dp_spec_parse_call));
	}
	return add(p, name, dp_spec_parse_call);
}

struct dp_error *dp_option_event_name(struct dp_parser *p, const char *name)
{
	struct dp_probe_args *a = &p->probes;
	if (!dp_name_valid(name))
		return dp_error(DP_TAG_SYNTAX, "invalid event name '%s': use letters, digits and _, no digit first", name);
	if (a->pending_name)
		return dp_error(DP_TAG_USAGE, "--name '%s' follows --name '%s': each goes to one probe", name, a->pending_name);
	a->pending_name = strdup(name);
	return a->pending_name ? NULL : dp_error_nomem();
}

static struct dp_error *remember(struct dp_probe_args *a, const char *context)
{
	const char **grown = realloc(a->early_context, (a->nearly + 1) * sizeof(*grown));
	if (!grown)
		return dp_error_nomem();
	a->early_context = grown;
	a->early_context[a->nearly++] = context;
	return NULL;
}

/* A context: compiled, and kept as text for the manifest. */
static struct dp_error *add_context(struct dp_probe_args *a, size_t i, const char *context)
{
	struct dp_typed *t = &a->typed[i];
	DP_TRY(dp_context_check(context));
	if (dp_scope_is_fixed(context))
		DP_TRY(dp_fields_add(&a->probe[i].fields, context));
	char **grown = realloc(t->context, (t->ncontexts + 1) * sizeof(*grown));
	t->context = grown ? grown : t->context;
	if (!grown || !(t->context[t->ncontexts] = strdup(context)))
		return dp_error_nomem();
	t->ncontexts++;
	return NULL;
}

struct dp_error *dp_option_context(struct dp_parser *p, const char *context)
{
	struct dp_probe_args *a = &p->probes;
	if (!a->n)
		return remember(a, context);
	a->group_closed = true;
	for (size_t i = a->group; i < a->n; i++)
		DP_TRY(add_context(a, i, context));
	return NULL;
}

static struct dp_error *set_when(struct dp_probe_args *a, size_t i, const char *text)
{
	struct dp_probe *p = &a->probe[i];
	if (a->typed[i].when)
		return dp_error(DP_TAG_USAGE, "'%s' has two conditions; join them with &&", p->spec.text);
	DP_TRY(dp_scope_check(text));
	if (!dp_scope_has_names(text))
		DP_TRY(dp_scope_condition(NULL, text, &p->when));
	a->typed[i].when = strdup(text);
	return a->typed[i].when ? NULL : dp_error_nomem();
}

struct dp_error *dp_option_when(struct dp_parser *p, const char *text)
{
	struct dp_probe_args *a = &p->probes;
	if (!a->n) {
		a->early_when = text;
		return NULL;
	}
	a->group_closed = true;
	for (size_t i = a->group; i < a->n; i++)
		DP_TRY(set_when(a, i, text));
	return NULL;
}

/*
 * Default names get _2, _3, ... to be unique; given names must be unique. The probes of a pattern get their names when the
 * pattern is expanded.
 */
static struct dp_error *name_given(struct dp_names *names, const struct dp_probe *p)
{
	bool fresh = true;
	if (p->name)
		DP_TRY(dp_names_add(names, p->name, &fresh));
	return fresh ? NULL : dp_error(DP_TAG_USAGE, "two probes have the name '%s'", p->name);
}

static struct dp_error *name_default(struct dp_names *names, struct dp_probe *p)
{
	if (p->name || dp_spec_selects(&p->spec))
		return NULL;
	dp_auto_free char *base = dp_probe_default_name(&p->spec);
	if (!base)
		return dp_error_nomem();
	DP_TRY(dp_names_make(names, base, &p->name));
	p->shown = dp_probe_default_shown(&p->spec, p->name);
	return NULL;
}

static struct dp_error *name_all(struct dp_probe_args *a)
{
	struct dp_names names = {0};
	struct dp_error *err = NULL;
	for (size_t i = 0; !err && i < a->n; i++)
		err = name_given(&names, &a->probe[i]);
	for (size_t i = 0; !err && i < a->n; i++)
		err = name_default(&names, &a->probe[i]);
	dp_names_fini(&names);
	return err;
}

static struct dp_error *finish_probe(struct dp_probe_args *a, size_t i)
{
	for (size_t k = 0; k < a->nearly; k++)
		DP_TRY(add_context(a, i, a->early_context[k]));
	if (a->early_when && !a->typed[i].when)
		DP_TRY(set_when(a, i, a->early_when));
	if (a->snapshot)
		DP_TRY(add_context(a, i, DP_CONTEXT_SNAPSHOT));
	return NULL;
}

struct dp_error *dp_args_finish(struct dp_probe_args *a)
{
	if (a->pending_name) {
		if (!a->n || a->probe[a->n - 1].name)
			return dp_error(DP_TAG_USAGE, "--name '%s': no probe follows it", a->pending_name);
		a->probe[a->n - 1].name = dp_take(a->pending_name, NULL);
	}
	for (size_t i = 0; i < a->n; i++)
		DP_TRY(finish_probe(a, i));
	return name_all(a);
}

void dp_args_fini(struct dp_probe_args *a)
{
	for (size_t i = 0; i < a->n; i++) {
		dp_probe_fini(&a->probe[i]);
		dp_typed_fini(&a->typed[i]);
	}
	free(a->probe);
	free(a->typed);
	free(a->pending_name);
	free(a->early_context);
	*a = (struct dp_probe_args){0};
}
