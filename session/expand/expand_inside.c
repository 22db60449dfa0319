/* SPDX-License-Identifier: MIT */
/* Sites inside of functions (lines, inlined copies, markers), and plain names, which may stand for inlined copies and overloads.
 */
#include "probes/point/select/more.h"
#include "probes/point/usdt/usdt.h"
#include "session/expand/expand_internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* With more plain names than this, inlined copies are not searched: each name needs a walk through the debug information. */
#define SEARCHED_MAX 64u

char *dp_expand_called(const char *label)
{
	char *name = malloc(strlen(label) + 1), *to = name;
	for (; name && *label; label++)
		if (isalnum((unsigned char)*label) || *label == '_')
			*to++ = *label;
		else if (to > name && to[-1] != '_')
			*to++ = '_';
	while (name && to > name && to[-1] == '_')
		to--;
	if (name)
		*to = 0;
	return name;
}

/* Debug information may be wrong: check that the address is the beginning of an instruction. */
static struct dp_error *check(struct dp_expander *x, const struct dp_selected *s)
{
	const struct dp_text *text;
	const struct dp_site site = {
	        .addr = dp_addr_add(s->function.start, (int64_t)s->offset),
	        .function = s->function,
	        .module = s->function.module,
	};
	DP_TRY(dp_code_view_get(x->view, &site, &text));
	return dp_text_check_boundary(text, site.addr.v);
}

/* The contexts of a marker without -t: its arguments, except those whose place is unknown and vector registers. */
static struct dp_error *add_arguments(const struct dp_selected *s, struct dp_typed *typed)
{
	struct dp_usdt_arg arg[DP_USDT_MAX_ARGS];
	const size_t n = dp_usdt_args(s->function.module, s->marker, arg);
	free(typed->context); /* an empty list */
	typed->context = calloc(n + 1, sizeof(*typed->context));
	if (!typed->context)
		return dp_error_nomem();
	for (size_t i = 0; i < n; i++) {
		if (!arg[i].size || arg[i].xmm)
			continue;
		if (asprintf(&typed->context[typed->ncontexts], "arg%zu", i) < 0)
			return dp_error_nomem();
		typed->ncontexts++;
	}
	return NULL;
}

struct dp_error *dp_expand_inside(struct dp_expander *x, size_t from, const struct dp_selected *s)
{
	const struct dp_probe *pattern = &x->from->probe[from];
	dp_auto_free char *name = dp_expand_called(s->label ? s->label : pattern->spec.symbol);
	const struct dp_expand_place at = {.f = &s->function,
	                                   .offset = s->offset,
	                                   .bound = true,
	                                   .called = name,
	                                   .label = s->label ? s->label : pattern->spec.symbol};
	if (!name)
		return dp_error_nomem();
	struct dp_error *wrong = check(x, s);
	if (wrong)
		return dp_expand_add_refused(x, from, &at, wrong);
	DP_TRY(dp_expand_add(x, from, &at, NULL));
	if (s->inlined && !(x->out.trace.typed[x->out.trace.nprobes - 1].inlined = strdup(s->inlined)))
		return dp_error_nomem();
	return s->marker && !x->from->typed[from].ncontexts ? add_arguments(s, &x->out.trace.typed[x->out.trace.nprobes - 1])
	                                                    : NULL;
}

/* ---- a plain name -------------------------------------------------------------------------------------------------- */

static size_t plain_names(const struct dp_trace_spec *trace)
{
	size_t n = 0;
	for (size_t i = 0; i < trace->nprobes; i++)
		n += dp_expand_is_plain(&trace->probe[i]);
	return n;
}

bool dp_expand_is_plain(const struct dp_probe *p)
{
	return p->spec.symbol && !dp_spec_selects(&p->spec) && !p->spec.has_offset;
}

static void log_places(struct dp_expander *x, const struct dp_spec *spec, bool known, const struct dp_selection *found)
{
	const size_t shown = found->n < 4 ? found->n : 4;
	struct dp_buf places;
	if (!known && found->n == 1 && !found->item->label)
		return;
	dp_buf_init(&places);
	for (size_t i = 0; i < shown; i++)
		dp_buf_printf(&places, "%s %s", i ? "," : "",
		              found->item[i].label ? found->item[i].label : found->item[i].function.name);
	dp_trace_log(x->from, DP_LOG_INFO, "%s%s%zu %s%s%s", spec->text, known ? ": the function, and " : ": ", found->n,
	             found->n == 1 ? "place:" : "places:", dp_buf_str(&places), found->n > shown ? ", ..." : "");
	dp_buf_fini(&places);
}

/* The only probe keeps the pattern's name. Others are named after what they are, with the user's name as a prefix. */
static struct dp_error *name_one(struct dp_expander *x, size_t from, struct dp_probe *p, bool only)
{
	const struct dp_probe *pattern = &x->from->probe[from];
	dp_auto_free char *given = dp_probe_default_name(&pattern->spec), *base = dp_take(p->name, NULL), *with = NULL;
	if (!given || !base)
		return dp_error_nomem();
	if (only)
		return (p->name = strdup(pattern->name)) ? NULL : dp_error_nomem();
	if (!strncmp(pattern->name, given, strlen(given)))
		return dp_names_make(&x->names, base, &p->name);
	if (asprintf(&with, "%.95s_%.95s", pattern->name, base) < 0)
		return dp_error_nomem();
	return dp_names_make(&x->names, with, &p->name);
}

static struct dp_error *add_more(struct dp_expander *x, size_t from, const struct dp_selection *found, bool known,
                                 dp_expand_one_function *add)
{
	for (size_t i = 0; i < found->n; i++) {
		const size_t first = x->out.trace.nprobes;
		DP_TRY(add(x, from, &found->item[i]));
		for (size_t k = first; k < x->out.trace.nprobes; k++)
			DP_TRY(name_one(x, from, &x->out.trace.probe[k],
			                !known && found->n == 1 && x->out.trace.nprobes == first + 1));
	}
	return NULL;
}

struct dp_error *dp_expand_plain(struct dp_expander *x, size_t from, dp_expand_one_function *add)
{
	const struct dp_probe *p = &x->from->probe[from];
	struct dp_selection found = {0};
	bool known = true;
	if (dp_expand_is_plain(p)) {
		const bool inlined = p->entry && plain_names(x->from) <= SEARCHED_MAX;
		DP_TRY(dp_image_more(x->image, &p->spec, inlined, &known, &found));
	}
	struct dp_error *err = known || !found.n ? dp_expand_copy(x, from) : NULL;
	if (found.n)
		log_places(x, &p->spec, known, &found);
	err = err ? err : add_more(x, from, &found, known, add);
	x->out.matched += found.n ? found.n + known : 0;
	dp_selection_fini(&found);
	return err;
}
