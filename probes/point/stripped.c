/* SPDX-License-Identifier: MIT */
#include "base/cleanup.h"
#include "probes/image/module.h"
#include "probes/point/resolve.h"

#include <string.h>

/* Only names that other files may use are left: no .symtab, no table of Go's, no debug symbols. */
static bool is_stripped(struct dp_module *m)
{
	GElf_Shdr shdr;
	struct dp_span s;
	return m->elf && !m->vdso && !dp_module_own_symbols(m)->has_symtab &&
	       !dp_elf_section(m->elf, ".gopclntab", 0, &shdr, &s) && !dp_module_debug_symbols(m)->n;
}

/* The module that the name would be in: the one that was typed, or the program. */
static struct dp_module *meant(struct dp_image *image, const struct dp_spec *spec)
{
	for (size_t i = 0; i < dp_image_nmodules(image) && (spec->module || !i); i++)
		if (dp_module_matches(dp_image_module(image, i), spec->module))
			return dp_image_module(image, i);
	return NULL;
}

/* A name of the program's own, with a letter too many; names of other modules are written with the module. */
static bool is_misspelled(const char *message)
{
	const char *meant = strstr(message, "did you mean");
	return meant && !strchr(meant, '!');
}

struct dp_error *dp_image_explain_unknown(struct dp_image *image, const struct dp_spec *spec, struct dp_error *err)
{
	if (!err || err->tag != DP_TAG_NO_SYMBOL || !spec->symbol || dp_spec_is_source(spec) || spec->call ||
	    is_misspelled(err->message))
		return err;
	struct dp_module *m = meant(image, spec);
	if (!m || !is_stripped(m))
		return err;
	const char *id = dp_module_build_id(m);
	const size_t n = strlen(err->message);
	struct dp_error *why =
	        dp_error(DP_TAG_STRIPPED, "%s%s %s (%s%s) is stripped: only the names that it exports are left", err->message,
	                 n && err->message[n - 1] == '?' ? "" : ";", dp_module_shown(m), *id ? "build-id " : "no build-id", id);
	dp_error_destroy(err);
	return why;
}
