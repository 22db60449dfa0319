/* SPDX-License-Identifier: MIT */
/*
 * How probes and what belongs to them find each other on the command line. --name goes to the next probe (or, at the end, to the
 * last one). -t and --when go to the group of probes directly before them: those given since the last -t or --when. Before the
 * first probe they go to every probe.
 */
#include "cli/options_probe.h"

#include <stdlib.h>
#include <string.h>

#define MAX_PROBES 60000u

struct dp_error *dp_args_probe(struct dp_probe_args *a, const char *spec, bool entry)
{
	if (a->n >= MAX_PROBES)
		return dp_error(DP_TAG_USAGE, "more than %u probes", MAX_PROBES);
	struct dp_probe *grown = realloc(a->probe, (a->n + 1) * sizeof(*grown));
	a->probe = grown ? grown : a->probe;
	struct dp_typed *typed = realloc(a->typed, (a->n + 1) * sizeof(*typed));
	a->typed = typed ? typed : a->typed;
	if (!grown || !typed)
		return dp_error(DP_TAG_NOMEM, "out of memory for the probes");
	struct dp_probe *p = &a->probe[a->n];
	a->typed[a->n] = (struct dp_typed){0};
	*p = (struct dp_probe){.entry = entry};
	DP_TRY(dp_spec_parse(spec, &p->spec));
	p->name = dp_take(a->pending_name, NULL);
	if (a->group_closed)
		a->group = a->n;
	a->group_closed = false;
	a->n++;
	return NULL;
}

bool dp_name_valid(const char *name)
{
	static const char alpha[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_", digit[] = "0123456789";
	if (!*name || strlen(name) > 200 || strchr(digit, *name))
		return false;
	for (; *name; name++)
		if (!strchr(alpha, *name) && !strchr(digit, *name))
			return false;
	return true;
}

struct dp_error *dp_args_name(struct dp_probe_args *a, const char *name)
{
	if (!dp_name_valid(name))
		return dp_error(DP_TAG_SYNTAX, "'%s' is no event name: letters, digits and _ only, no digit first", name);
	if (a->pending_name)
		return dp_error(DP_TAG_USAGE, "--name '%s' follows --name '%s': each goes to one probe", name, a->pending_name);
	a->pending_name = strdup(name);
	return a->pending_name ? NULL : dp_error(DP_TAG_NOMEM, "out of memory for a name");
}

static struct dp_error *remember(struct dp_probe_args *a, const char *context)
{
	const char **grown = realloc(a->early_context, (a->nearly + 1) * sizeof(*grown));
	if (!grown)
		return dp_error(DP_TAG_NOMEM, "out of memory for the contexts");
	a->early_context = grown;
	a->early_context[a->nearly++] = context;
	return NULL;
}

/* The meaning and the text of a context: the one is compiled, the other kept for the manifest. */
static struct dp_error *add_context(struct dp_probe_args *a, size_t i, const char *context)
{
	struct dp_typed *t = &a->typed[i];
	DP_TRY(dp_fields_add(&a->probe[i].fields, context));
	char **grown = realloc(t->context, (t->ncontexts + 1) * sizeof(*grown));
	t->context = grown ? grown : t->context;
	if (!grown || !(t->context[t->ncontexts] = strdup(context)))
		return dp_error(DP_TAG_NOMEM, "out of memory for the contexts");
	t->ncontexts++;
	return NULL;
}

struct dp_error *dp_args_context(struct dp_probe_args *a, const char *context)
{
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
	if (p->when)
		return dp_error(DP_TAG_USAGE, "'%s' has two conditions; join them with &&", p->spec.text);
	DP_TRY(dp_expr_parse(text, &p->when));
	a->typed[i].when = strdup(text);
	return a->typed[i].when ? NULL : dp_error(DP_TAG_NOMEM, "out of memory for a condition");
}

struct dp_error *dp_args_when(struct dp_probe_args *a, const char *text)
{
	if (!a->n) {
		a->early_when = text;
		return NULL;
	}
	a->group_closed = true;
	for (size_t i = a->group; i < a->n; i++)
		DP_TRY(set_when(a, i, text));
	return NULL;
}

static bool name_taken(const struct dp_probe_args *a, size_t upto, const char *name)
{
	for (size_t i = 0; i < upto; i++)
		if (!strcmp(a->probe[i].name, name))
			return true;
	return false;
}

/* Default names are made unique with _2, _3, ...; given names have to be unique already. */
static struct dp_error *name_probe(struct dp_probe_args *a, size_t i)
{
	struct dp_probe *p = &a->probe[i];
	if (p->name)
		return name_taken(a, i, p->name) ? dp_error(DP_TAG_USAGE, "two probes have the name '%s'", p->name) : NULL;
	dp_auto_free char *base = dp_probe_default_name(&p->spec);
	p->name = base ? strdup(base) : NULL;
	for (unsigned k = 2; p->name && name_taken(a, i, p->name); k++) {
		free(p->name);
		if (asprintf(&p->name, "%s_%u", base, k) < 0)
			p->name = NULL;
	}
	return p->name ? NULL : dp_error(DP_TAG_NOMEM, "out of memory for a name");
}

static struct dp_error *finish_probe(struct dp_probe_args *a, size_t i)
{
	for (size_t k = 0; k < a->nearly; k++)
		DP_TRY(add_context(a, i, a->early_context[k]));
	if (a->early_when && !a->probe[i].when)
		DP_TRY(set_when(a, i, a->early_when));
	return name_probe(a, i);
}

struct dp_error *dp_args_finish(struct dp_probe_args *a)
{
	if (a->pending_name) {
		if (!a->n || a->probe[a->n - 1].name)
			return dp_error(DP_TAG_USAGE, "--name '%s' has no probe to go to", a->pending_name);
		a->probe[a->n - 1].name = dp_take(a->pending_name, NULL);
	}
	for (size_t i = 0; i < a->n; i++)
		DP_TRY(finish_probe(a, i));
	return NULL;
}

void dp_typed_fini(struct dp_typed *t)
{
	for (size_t i = 0; i < t->ncontexts; i++)
		free(t->context[i]);
	free(t->context);
	free(t->when);
	*t = (struct dp_typed){0};
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
