/* SPDX-License-Identifier: MIT */
/*
 * Finds the modules that the program cannot unload: the executable and its direct and indirect dependencies. Uses only the files'
 * DT_NEEDED and DT_SONAME; a name that two modules have matches neither. Modules of dlopen() or LD_PRELOAD do not count, although
 * they may stay as well.
 */
#include "probes/image/image_internal.h"
#include "probes/hazard/hazard.h"

#include <string.h>

static const char *string_at(const struct dp_elf *elf, uint64_t offset)
{
	uint64_t table;
	struct dp_span s;
	if (!dp_elf_dynamic(elf, DT_STRTAB, &table) || !dp_elf_at(elf, table + offset, &s) || !memchr(s.bytes, 0, s.size))
		return NULL;
	return (const char *)s.bytes;
}

static bool is_called(const struct dp_module *m, const char *name)
{
	uint64_t offset;
	const char *soname = m->elf && dp_elf_dynamic(m->elf, DT_SONAME, &offset) ? string_at(m->elf, offset) : NULL;
	return !strcmp(m->name, name) || (soname && !strcmp(soname, name));
}

static struct dp_module *only_one(const struct dp_image *image, const char *name)
{
	struct dp_module *found = NULL;
	for (size_t i = 0; i < image->nmodules; i++) {
		if (!is_called(image->module[i], name))
			continue;
		if (found)
			return NULL;
		found = image->module[i];
	}
	return found;
}

/* True if it marked a module that was not marked before. */
static bool mark_needed(const struct dp_image *image, const struct dp_module *m)
{
	uint64_t offset;
	bool more = false;
	for (size_t n = 0; m->elf && dp_elf_dynamic_nth(m->elf, DT_NEEDED, n, &offset); n++) {
		const char *name = string_at(m->elf, offset);
		struct dp_module *needed = name ? only_one(image, name) : NULL;
		more |= needed && !needed->lasting;
		if (needed)
			needed->lasting = true;
	}
	return more;
}

static void mark_all(struct dp_image *image)
{
	image->lasting_known = true;
	if (!image->nmodules)
		return;
	image->module[0]->lasting = true;
	for (bool more = true; more;) {
		more = false;
		for (size_t i = 0; i < image->nmodules; i++)
			if (image->module[i]->lasting)
				more |= mark_needed(image, image->module[i]);
	}
}

bool dp_module_needs_none(struct dp_module *m)
{
	uint64_t offset;
	return m->elf && dp_elf_phdr(m->elf, PT_INTERP) && !dp_elf_dynamic(m->elf, DT_NEEDED, &offset);
}

bool dp_image_never_unloaded(struct dp_image *image, dp_addr addr)
{
	if (!image->lasting_known)
		mark_all(image);
	const struct dp_module *m = dp_image_module_at(image, addr);
	return m && m->lasting;
}
