/* SPDX-License-Identifier: MIT */
/*
 * Resolves a spec to its one site. Searches the symbols of the mapped files first, and debug files only if those do not have the
 * name: attaching stays fast, and a library's exported function wins over a static function of the same name elsewhere.
 */
#include "probes/point/candidates.h"

#include <string.h>

typedef unsigned long long ull;

static bool is_main(const struct dp_spec *spec)
{
	return !strcmp(spec->symbol, "main");
}

/* Searches the first `n` modules. */
static void search(struct dp_image *image, const struct dp_spec *spec, size_t n, struct dp_candidates *found)
{
	struct dp_symbol_name name = dp_symbol_name_parse(spec->symbol);
	for (size_t i = 0; i < n; i++)
		if (dp_module_matches(image->module[i], spec->module))
			dp_candidates_add(found, image->module[i], false, &name);
	bool enough = found->n > 0;
	for (size_t i = 0; i < n && !enough; i++)
		if (dp_module_matches(image->module[i], spec->module))
			dp_candidates_add(found, image->module[i], true, &name);
}

static bool has_hidden_main(struct dp_module *m)
{
	uint64_t vaddr;
	if (dp_module_own_symbols(m)->has_symtab)
		return false;
	struct dp_error *err = dp_module_find_main(m, &vaddr);
	bool found = !err;
	dp_error_destroy(err);
	return found;
}

uint64_t dp_symbol_size(struct dp_module *m, const struct dp_symbol *s)
{
	const struct dp_fde *fde = s->size ? NULL : dp_module_fde_at(m, s->value);
	return fde ? fde->start + fde->size - s->value : s->size;
}

/* Adds the offset and checks that it stays inside the function. */
static struct dp_error *finish(const struct dp_spec *spec, const struct dp_function *f, struct dp_site *ret)
{
	dp_addr start, end, addr = dp_addr_add(f->start, (int64_t)spec->value);
	if (spec->value && f->size && spec->value >= f->size)
		return dp_error(DP_TAG_NOT_CODE,
		                "'%s': the function is 0x%llx bytes long, so the offset 0x%llx is beyond its end", spec->text,
		                (ull)f->size, (ull)spec->value);
	if (!dp_module_text_bounds(f->module, addr, &start, &end))
		return dp_error(DP_TAG_NOT_CODE, "'%s' is at 0x%llx, which is outside of the code of %s", spec->text, (ull)addr.v,
		                f->module->name);
	if (f->module->vdso)
		return dp_error(DP_TAG_VDSO, "'%s' is in the vdso, which the kernel provides", spec->text);
	*ret = (struct dp_site){.addr = addr, .function = *f, .module = f->module};
	return NULL;
}

/* Resolves main from the start code; .eh_frame has its bounds. */
static struct dp_error *resolve_hidden_main(struct dp_module *m, const struct dp_spec *spec, struct dp_site *ret)
{
	uint64_t vaddr;
	DP_TRY(dp_module_find_main(m, &vaddr));
	const uint64_t size = dp_symbol_size(m, &(struct dp_symbol){.value = vaddr});
	const struct dp_function f = {.start = dp_module_addr(m, vaddr), .size = size, .name = "main", .module = m};
	return finish(spec, &f, ret);
}

static struct dp_error *choose(struct dp_image *image, const struct dp_spec *spec, const struct dp_candidates *found,
                               struct dp_site *ret)
{
	bool executable = image->nmodules && dp_module_matches(image->module[0], spec->module);
	if (found->failed)
		return dp_error_nomem();
	if (!found->n && is_main(spec) && executable && !dp_module_own_symbols(image->module[0])->has_symtab)
		return resolve_hidden_main(image->module[0], spec, ret);
	if (!found->n)
		return dp_candidates_unknown(found, image, spec);
	if (found->n > 1)
		return dp_candidates_ambiguous(found, spec);
	const struct dp_candidate *one = found->item;
	if (one->symbol->type == STT_GNU_IFUNC)
		return dp_candidates_ifunc(one);
	struct dp_function f = {.start = dp_module_addr(one->module, one->symbol->value), .module = one->module};
	f.size = dp_symbol_size(one->module, one->symbol);
	f.name = one->symbol->name;
	return finish(spec, &f, ret);
}

/*
 * A main without a module is the executable's, even if a library has one too. A library's main is used only if the executable has
 * none (test frameworks).
 */
static struct dp_error *resolve_symbol(struct dp_image *image, const struct dp_spec *spec, struct dp_site *ret)
{
	struct dp_candidates found = {0};
	bool only_executable = !spec->module && is_main(spec) && image->nmodules;
	search(image, spec, only_executable ? 1 : image->nmodules, &found);
	if (only_executable && !found.n && !has_hidden_main(image->module[0]))
		search(image, spec, image->nmodules, &found);
	struct dp_error *err = choose(image, spec, &found, ret);
	dp_candidates_fini(&found);
	return err;
}

/* Says why an address outside of all modules' text cannot be probed. */
static struct dp_error *no_code(const struct dp_image *image, const struct dp_spec *spec, dp_addr addr)
{
	const struct dp_map *map = dp_image_map_at(image, addr);
	if (!map)
		return dp_error(DP_TAG_NOT_CODE, "'%s': nothing is mapped at 0x%llx in the target", spec->text, (ull)addr.v);
	if (!strcmp(map->path, "[vdso]") || !strcmp(map->path, "[vsyscall]"))
		return dp_error(DP_TAG_VDSO, "'%s' is in %s, which the kernel provides", spec->text, map->path);
	if (map->exec)
		return dp_error(
		        DP_TAG_NOT_CODE,
		        "'%s': 0x%llx is in executable memory, but not in the code of an ELF file (%s); such code may change "
		        "at any time",
		        spec->text, (ull)addr.v, *map->path ? map->path : "generated code");
	return dp_error(DP_TAG_NOT_CODE, "'%s': 0x%llx is not executable (it is in %s)", spec->text, (ull)addr.v,
	                *map->path ? map->path : "anonymous memory");
}

static struct dp_error *resolve_address(struct dp_image *image, struct dp_module *m, const struct dp_spec *spec,
                                        struct dp_site *ret)
{
	dp_addr start, end, addr = m ? dp_module_addr(m, spec->value) : dp_addr_of(spec->value);
	if (!m)
		m = dp_image_module_at(image, addr);
	if (m && m->vdso)
		return dp_error(DP_TAG_VDSO, "'%s' is in the vdso, which the kernel provides", spec->text);
	if (m && !m->elf)
		return dp_module_failure(m);
	if (!m || !dp_module_text_bounds(m, addr, &start, &end))
		return no_code(image, spec, addr);
	struct dp_site site = {.addr = addr, .module = m, .function = {.name = "", .module = m}};
	dp_module_function_at(m, addr, &site.function);
	*ret = site;
	return NULL;
}

/* Finds the one module to which a file address is relative. */
static struct dp_error *only_module(struct dp_image *image, const struct dp_spec *spec, struct dp_module **ret)
{
	struct dp_module *first = NULL;
	for (size_t i = 0; spec->module && i < image->nmodules; i++) {
		struct dp_module *m = image->module[i];
		if (!dp_module_matches(m, spec->module))
			continue;
		if (first && first->bias != m->bias)
			return dp_error(DP_TAG_AMBIGUOUS,
			                "'%s' matches %s and %s; name one of them, or give the address in the target",
			                spec->module, first->path, m->path);
		first = m;
	}
	*ret = first;
	return NULL;
}

bool dp_image_has_module(const struct dp_image *image, const struct dp_spec *spec)
{
	for (size_t i = 0; i < image->nmodules; i++)
		if (dp_module_matches(image->module[i], spec->module))
			return true;
	return false;
}

static struct dp_error *resolve_selected(struct dp_image *image, struct dp_module *m, const struct dp_spec *spec,
                                         struct dp_site *ret)
{
	const struct dp_function f = {dp_module_addr(m, spec->at.function), spec->at.size, spec->symbol, m};
	return spec->symbol ? finish(spec, &f, ret) : resolve_address(image, m, spec, ret);
}

struct dp_error *dp_image_resolve(struct dp_image *image, const struct dp_spec *spec, struct dp_site *ret)
{
	struct dp_module *m = NULL;
	for (size_t i = 0; spec->at.module && i < image->nmodules; i++)
		if (image->module[i]->id == spec->at.module)
			return resolve_selected(image, image->module[i], spec, ret);
	if (spec->module && !dp_image_has_module(image, spec))
		return dp_candidates_no_module(image, spec);
	if (spec->symbol)
		return resolve_symbol(image, spec, ret);
	DP_TRY(only_module(image, spec, &m));
	return resolve_address(image, m, spec, ret);
}
