/* SPDX-License-Identifier: MIT */
/* Makes the spec of a selected place. Its text names exactly this place, unambiguously. */
#include "base/cleanup.h"
#include "probes/point/candidates.h"

#include <string.h>

/* True if `word` also names another module. */
static bool names_another(const struct dp_image *image, const struct dp_module *m, const char *word)
{
	for (size_t i = 0; i < image->nmodules; i++)
		if (image->module[i] != m && dp_module_matches(image->module[i], word))
			return true;
	return false;
}

/* True if the user can type the text. Symbols may contain characters of the grammar. */
static bool reads_back(const struct dp_spec *spec)
{
	struct dp_spec typed;
	struct dp_error *err = dp_spec_parse(spec->text, &typed);
	if (err)
		return !dp_error_destroy(err) && false;
	const bool same = typed.point == DP_POINT_PLACE && typed.value == spec->value && typed.module &&
	                  !strcmp(typed.module, spec->module) && typed.symbol && !strcmp(typed.symbol, spec->symbol);
	dp_spec_fini(&typed);
	return same;
}

/* The function's symbol, or NULL if the module has another function with this name. */
static const struct dp_symbol *only_symbol(const struct dp_function *f)
{
	const struct dp_symbol_name name = dp_symbol_name_parse(f->name);
	struct dp_candidates found = {0};
	dp_candidates_add(&found, f->module, false, &name);
	if (!found.n)
		dp_candidates_add(&found, f->module, true, &name);
	const struct dp_symbol *one = found.n == 1 && !found.failed ? found.item->symbol : NULL;
	dp_candidates_fini(&found);
	return one && dp_module_addr(f->module, one->value).v == f->start.v ? one : NULL;
}

static struct dp_error *fill(const char *module, const char *symbol, uint64_t value, struct dp_spec *ret)
{
	struct dp_spec spec = {.module = strdup(module), .value = value, .has_offset = symbol && value};
	const char *name = symbol ? symbol : "", *plus = symbol ? "+" : "";
	const int n = symbol && !value ? asprintf(&spec.text, "%s!%s", module, symbol)
	                               : asprintf(&spec.text, "%s!%s%s0x%llx", module, name, plus, (unsigned long long)value);
	spec.text = n < 0 ? NULL : spec.text;
	spec.symbol = symbol ? strdup(symbol) : NULL;
	*ret = spec;
	return spec.text && spec.module && (spec.symbol || !symbol) ? NULL : dp_error_nomem();
}

struct dp_error *dp_image_spec_of(struct dp_image *image, const struct dp_function *f, uint64_t offset, struct dp_spec *ret)
{
	struct dp_module *m = f->module;
	const bool shared = names_another(image, m, m->name);
	const char *module = shared ? m->path : m->name;
	const struct dp_symbol *s = *f->name ? only_symbol(f) : NULL;
	struct dp_error *err = s ? fill(module, f->name, offset, ret) : NULL;
	if (!err && s && !reads_back(ret)) {
		dp_spec_fini(ret);
		s = NULL;
	}
	if (!err && !s)
		err = fill(module, NULL, dp_module_vaddr(m, f->start) + offset, ret);
	if (err)
		dp_spec_fini(ret);
	else if (!(shared && names_another(image, m, module)) && !(s && s->type == STT_GNU_IFUNC))
		ret->at = (struct dp_selected_at){m->id, s ? s->value : dp_module_vaddr(m, f->start), s ? dp_symbol_size(m, s) : 0};
	return err;
}
