/* SPDX-License-Identifier: MIT */
/*
 * Finds the functions that match a pattern, by their symbols. A function is one address: its aliases count once, under the best
 * name that matches, and an exception that matches any alias excludes the function.
 */
#include "probes/point/select/select.h"

#include "base/cleanup.h"
#include "probes/elf/demangle.h"
#include "probes/point/candidates.h"
#include "probes/point/source/source.h"
#include "probes/point/usdt/usdt.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

struct gather {
	const struct dp_spec *spec;
	struct dp_name_match match; /* for C++ and Rust names */
	const char *const *except;
	struct dp_name_match *unwanted; /* for each of `except`, the same */
	size_t nexcept;
	struct dp_selection *found;
	size_t excepted;
};

static bool is_function(const struct dp_symbol *s)
{
	return s->type == STT_FUNC || s->type == STT_GNU_IFUNC;
}

/* The rarely executed part of a function, which compilers place elsewhere. It belongs to the function. */
static bool is_fragment(const struct dp_symbol *s)
{
	static const char cold[] = ".cold";
	return s->len > sizeof(cold) - 1 && !strcmp(s->name + s->len - (sizeof(cold) - 1), cold);
}

static bool wanted(const struct gather *g, const struct dp_symbol *s)
{
	return is_function(s) && !is_fragment(s) &&
	       (!strcmp(g->spec->symbol, s->name) || !fnmatch(g->spec->symbol, s->name, 0) ||
	        dp_name_match_symbol(&g->match, s->name));
}

static const char *after_bang(const char *except)
{
	const char *bang = strrchr(except, '!');
	return bang ? bang + 1 : except;
}

static bool except_names(const struct gather *g, size_t i, const struct dp_module *m, const struct dp_symbol *s)
{
	const char *except = g->except[i], *name = after_bang(except);
	dp_auto_free char *module = name > except ? strndup(except, (size_t)(name - 1 - except)) : NULL;
	if (name > except && !(module && dp_module_matches(m, module)))
		return false;
	return !fnmatch(name, s->name, 0) || dp_name_match_symbol(&g->unwanted[i], s->name);
}

static bool excepted(const struct gather *g, const struct dp_module *m, const struct dp_symbol *s)
{
	for (size_t i = 0; i < g->nexcept; i++)
		if (except_names(g, i, m, s))
			return true;
	return false;
}

/* Handles the symbols of one address, the best first. */
static void take_group(struct gather *g, struct dp_module *m, const struct dp_symbol *const *group, size_t n)
{
	const struct dp_symbol *best = NULL;
	struct dp_selected one = {.function = {.module = m}};
	for (size_t i = 0; i < n; i++) {
		one.ifunc |= group[i]->type == STT_GNU_IFUNC;
		best = !best && wanted(g, group[i]) ? group[i] : best;
	}
	for (size_t i = 0; best && i < n; i++)
		if (excepted(g, m, group[i])) {
			g->excepted++;
			return;
		}
	if (!best)
		return;
	one.function.start = dp_module_addr(m, best->value);
	one.function.name = best->name;
	for (size_t i = 0; i < n && !one.function.size; i++)
		one.function.size = is_function(group[i]) ? group[i]->size : 0;
	if (!one.function.size)
		one.function.size = dp_symbol_size(m, best);
	dp_selection_append(g->found, one);
}

static void take_index(struct gather *g, struct dp_module *m, const struct dp_symbol_index *index)
{
	for (size_t i = 0, end; i < index->n; i = end) {
		for (end = i + 1; end < index->n && index->symbol[end]->value == index->symbol[i]->value;)
			end++;
		take_group(g, m, index->symbol + i, end - i);
	}
}

/* For one address the file's own symbol comes before the debug file's, which was appended later. */
static int compare(const void *a, const void *b)
{
	const struct dp_selected *x = a, *y = b;
	if (x->function.start.v != y->function.start.v)
		return x->function.start.v < y->function.start.v ? -1 : 1;
	return (x->function.size == 0) - (y->function.size == 0);
}

static void sort(struct dp_selection *found)
{
	size_t n = 0;
	if (found->n)
		qsort(found->item, found->n, sizeof(*found->item), compare);
	for (size_t i = 0; i < found->n; i++)
		if (!n || found->item[n - 1].function.start.v != found->item[i].function.start.v)
			found->item[n++] = found->item[i];
	found->n = n;
}

static struct dp_error *none(const struct gather *g)
{
	const char *where = g->spec->module ? g->spec->module : "the target";
	if (g->excepted)
		return dp_error(DP_TAG_NO_SYMBOL, "'%s': all %zu matching functions in %s are excluded by -x", g->spec->text,
		                g->excepted, where);
	return dp_error(DP_TAG_NO_SYMBOL, "'%s': no function in %s matches '%s'", g->spec->text, where, g->spec->symbol);
}

static void search_all(struct dp_image *image, struct gather *g)
{
	for (size_t i = 0; i < image->nmodules; i++) {
		struct dp_module *m = image->module[i];
		if (m->vdso || !dp_module_matches(m, g->spec->module))
			continue;
		take_index(g, m, dp_module_own_index(m));
		take_index(g, m, dp_module_debug_index(m));
	}
}

static bool open_matches(struct gather *g)
{
	g->unwanted = calloc(g->nexcept + 1, sizeof(*g->unwanted));
	bool ok = g->unwanted && dp_name_match_init(&g->match, g->spec->symbol);
	for (size_t i = 0; ok && i < g->nexcept; i++)
		ok = dp_name_match_init(&g->unwanted[i], after_bang(g->except[i]));
	return ok;
}

static void close_matches(struct gather *g)
{
	dp_name_match_fini(&g->match);
	for (size_t i = 0; g->unwanted && i < g->nexcept; i++)
		dp_name_match_fini(&g->unwanted[i]);
	free(g->unwanted);
}

/* What no whole name matches may match a name without its scope, as a name does that is no pattern. */
static struct dp_error *by_pattern(struct dp_image *image, struct gather *g)
{
	const bool opened = open_matches(g);
	if (opened)
		search_all(image, g);
	if (opened && !g->found->n && !g->excepted && !g->match.anywhere) {
		g->match.anywhere = true;
		search_all(image, g);
	}
	close_matches(g);
	if (!opened)
		return dp_error_nomem();
	sort(g->found);
	if (g->found->failed)
		return dp_error_nomem();
	return g->found->n ? NULL : none(g);
}

static struct dp_error *by_name(struct dp_image *image, struct gather *g)
{
	struct dp_site site;
	struct dp_selected one = {0};
	DP_TRY(dp_image_resolve(image, g->spec, &site));
	one.function = site.function;
	if (!site.function.start.v)
		return dp_error(DP_TAG_NO_SYMBOL, "'%s': no function is known around 0x%llx", g->spec->text,
		                (unsigned long long)site.addr.v);
	return dp_selection_append(g->found, one) ? NULL : dp_error_nomem();
}

/* Go's names contain brackets and stars. */
static bool is_a_name(struct dp_image *image, const struct dp_spec *spec)
{
	const struct dp_symbol_name name = dp_symbol_name_parse(spec->symbol);
	struct dp_candidates found = {0};
	for (size_t i = 0; i < image->nmodules; i++)
		if (dp_module_matches(image->module[i], spec->module)) {
			dp_candidates_add(&found, image->module[i], false, &name);
			dp_candidates_add(&found, image->module[i], true, &name);
		}
	const bool known = found.n > 0;
	dp_candidates_fini(&found);
	return known;
}

static struct dp_error *search(struct dp_image *image, struct gather *g)
{
	const struct dp_spec *spec = g->spec;
	if (spec->module && !dp_image_has_module(image, spec))
		return dp_candidates_no_module(image, spec);
	if (dp_spec_is_source(spec))
		return spec->provider ? dp_usdt_select(image, spec, g->found) : dp_source_select(image, spec, g->found);
	const bool modules = spec->symbol && dp_spec_is_pattern(spec->module), symbols = dp_spec_is_pattern(spec->symbol);
	return !modules && (!symbols || is_a_name(image, spec)) ? by_name(image, g) : by_pattern(image, g);
}

struct dp_error *dp_image_select(struct dp_image *image, const struct dp_spec *spec, const char *const *except, size_t nexcept,
                                 struct dp_selection *ret)
{
	struct gather g = {.spec = spec, .except = except, .nexcept = nexcept, .found = ret};
	*ret = (struct dp_selection){0};
	struct dp_error *err = search(image, &g);
	if (err)
		dp_selection_fini(ret);
	return err;
}
