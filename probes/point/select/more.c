/* SPDX-License-Identifier: MIT */
#include "probes/point/select/more.h"

#include "base/cleanup.h"
#include "probes/elf/demangle.h"
#include "probes/point/candidates.h"
#include "probes/point/source/source.h"
#include "probes/point/select/plt.h"

#include <string.h>

static bool is_cold(const struct dp_symbol *s)
{
	return strstr(s->name, ".cold");
}

static void by_symbols(struct dp_module *m, const struct dp_symbol_index *index, const struct dp_name_match *match,
                       struct dp_selection *ret)
{
	for (size_t i = 0; i < index->n; i++) {
		const struct dp_symbol *s = index->symbol[i];
		if (s->type != STT_FUNC || is_cold(s) || !dp_name_match_symbol(match, s->name))
			continue;
		struct dp_selected *one = dp_selection_add(ret, m, s->value, false, NULL);
		if (one && !one->inside)
			one->label = dp_demangle(s->name, true);
	}
}

static struct dp_error *by_meaning(struct dp_image *image, const struct dp_spec *spec, struct dp_selection *ret)
{
	struct dp_name_match match;
	if (!dp_name_match_init(&match, spec->symbol))
		return dp_error_nomem();
	for (size_t i = 0; i < image->nmodules; i++) {
		struct dp_module *m = image->module[i];
		if (!m->elf || m->vdso || !dp_module_matches(m, spec->module))
			continue;
		by_symbols(m, dp_module_own_index(m), &match, ret);
		by_symbols(m, dp_module_debug_index(m), &match, ret);
	}
	dp_name_match_fini(&match);
	return NULL;
}

static void copies(struct dp_module *m, const struct dp_spec *spec, bool known, struct dp_selection *ret)
{
	struct dp_debug *debug;
	struct dp_error *err = m->elf && !m->vdso ? dp_module_debug(m, &debug) : dp_module_failure(m);
	const struct dp_inline_query q = {.name = spec->symbol, .out_of_line = !known};
	if (!err)
		dp_inline_find(m, debug, &q, ret);
	dp_error_destroy(err);
}

static void find_copies(struct dp_image *image, const struct dp_spec *spec, const struct dp_site *site, struct dp_selection *ret)
{
	for (size_t i = 0; i < image->nmodules; i++) {
		struct dp_module *m = image->module[i];
		const bool near = spec->module || !site->module || m == site->module || m->executable;
		if (near && dp_module_matches(m, spec->module))
			copies(m, spec, site->module, ret);
	}
}

/* Removes the function itself from its copies. */
static void leave_out(struct dp_selection *l, dp_addr addr)
{
	size_t n = 0;
	for (size_t i = 0; i < l->n; i++) {
		struct dp_selected *one = &l->item[i];
		if (one->function.start.v + one->offset == addr.v)
			dp_selected_fini(one);
		else
			l->item[n++] = *one;
	}
	l->n = n;
}

static struct dp_error *search(struct dp_image *image, const struct dp_spec *spec, bool inlined, bool *known,
                               struct dp_selection *ret)
{
	struct dp_site site = {0};
	struct dp_error *err = dp_image_resolve(image, spec, &site);
	const enum dp_tag tag = err ? err->tag : DP_TAG_COUNT;
	dp_error_destroy(err);
	*known = tag != DP_TAG_NO_SYMBOL;
	if (tag != DP_TAG_COUNT && tag != DP_TAG_NO_SYMBOL)
		return NULL;
	if (!*known) {
		dp_plt_find(image, spec, ret);
		DP_TRY(by_meaning(image, spec, ret));
	}
	if (inlined)
		find_copies(image, spec, &site, ret);
	dp_selection_sort(ret);
	if (*known)
		leave_out(ret, site.addr);
	return ret->failed ? dp_error_nomem() : NULL;
}

struct dp_error *dp_image_more(struct dp_image *image, const struct dp_spec *spec, bool inlined, bool *known,
                               struct dp_selection *ret)
{
	*ret = (struct dp_selection){0};
	struct dp_error *err = search(image, spec, inlined, known, ret);
	if (err)
		dp_selection_fini(ret);
	return err;
}
