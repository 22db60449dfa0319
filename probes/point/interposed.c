/* SPDX-License-Identifier: MIT */
/*
 * Allocators that replace libc's. The loader binds a name to the first module that exports it, and libc comes last: where the
 * executable or another library has a malloc, libc's is not called.
 */
#include "probes/point/candidates.h"

#include <string.h>

static bool is_allocator(const char *name)
{
	static const char *const names[] = {"malloc",   "free",           "calloc",        "realloc",           "reallocarray",
	                                    "memalign", "posix_memalign", "aligned_alloc", "malloc_usable_size"};
	for (size_t i = 0; name && i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

static bool is_libc(const struct dp_module *m)
{
	return dp_module_matches(m, "libc.so") || dp_module_matches(m, "libc");
}

/* The loader has an allocator for itself, which it gives up for the program's. */
static bool is_loader(const struct dp_module *m)
{
	return !strncmp(m->name, "ld-", 3) || !strncmp(m->name, "ld.", 3);
}

static bool exports(struct dp_module *m, const struct dp_symbol_name *name)
{
	struct dp_candidates found = {0};
	dp_candidates_add(&found, m, false, name);
	const bool has = found.n == 1 && found.item->symbol->bind != STB_LOCAL;
	dp_candidates_fini(&found);
	return has;
}

struct dp_module *dp_image_interposer(struct dp_image *image, const struct dp_module *m, const char *name)
{
	if (!m || !is_allocator(name) || !is_libc(m))
		return NULL;
	const struct dp_symbol_name wanted = dp_symbol_name_parse(name);
	for (size_t i = 0; i < image->nmodules; i++) {
		struct dp_module *other = image->module[i];
		if (other != m && other->elf && !other->vdso && !is_loader(other) && exports(other, &wanted))
			return other;
	}
	return NULL;
}

bool dp_candidate_replaces_libc(const struct dp_candidates *c, size_t at)
{
	const struct dp_candidate *one = &c->item[at];
	bool in_libc = false;
	for (size_t i = 0; i < c->n; i++)
		in_libc |= is_libc(c->item[i].module);
	return in_libc && is_allocator(one->symbol->name) && !is_libc(one->module) && !is_loader(one->module) &&
	       one->symbol->bind != STB_LOCAL;
}
