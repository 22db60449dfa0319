/* SPDX-License-Identifier: MIT */
/* Writes a spec that names exactly one place, unambiguously. */
#include "base/cleanup.h"
#include "probes/point/candidates.h"

#include <string.h>

/* The module's name, or its path if the name also matches another module. */
static const char *module_word(const struct dp_image *image, struct dp_module *m)
{
	for (size_t i = 0; i < image->nmodules; i++)
		if (image->module[i] != m && dp_module_matches(image->module[i], m->name))
			return m->path;
	return m->name;
}

/* True if the text parses to the parts it was made of. Symbols may contain characters of the grammar. */
static bool reads_back(const char *text, const char *module, const char *symbol, uint64_t offset)
{
	struct dp_spec spec;
	struct dp_error *err = dp_spec_parse(text, &spec);
	if (err)
		return !dp_error_destroy(err) && false;
	const bool same = spec.point == DP_POINT_PLACE && spec.value == offset && spec.module && !strcmp(spec.module, module) &&
	                  spec.symbol && !strcmp(spec.symbol, symbol);
	dp_spec_fini(&spec);
	return same;
}

/* True if the module has no other function with this name. */
static bool alone(const struct dp_function *f)
{
	const struct dp_symbol_name name = dp_symbol_name_parse(f->name);
	struct dp_candidates found = {0};
	dp_candidates_add(&found, f->module, false, &name);
	if (!found.n)
		dp_candidates_add(&found, f->module, true, &name);
	const bool one = found.n == 1 && !found.failed && dp_module_addr(f->module, found.item[0].symbol->value).v == f->start.v;
	dp_candidates_fini(&found);
	return one;
}

char *dp_image_format_place(struct dp_image *image, const struct dp_function *f, uint64_t offset)
{
	char *text = NULL;
	const char *module = module_word(image, f->module);
	int n = *f->name ? asprintf(&text, offset ? "%s!%s+0x%llx" : "%s!%s", module, f->name, (unsigned long long)offset) : -1;
	if (n >= 0 && reads_back(text, module, f->name, offset) && alone(f))
		return text;
	if (n >= 0)
		free(text);
	n = asprintf(&text, "%s!0x%llx", module, (unsigned long long)(dp_module_vaddr(f->module, f->start) + offset));
	return n < 0 ? NULL : text;
}
