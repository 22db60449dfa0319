/* SPDX-License-Identifier: MIT */
/* The source file of a function: from its debug information, else from the symbol table, which has a file before its local
 * symbols. */
#include "base/path.h"
#include "probes/debug/debug.h"
#include "probes/image/module.h"
#include "probes/point/places.h"
#include "probes/point/spec.h"

#include <stdlib.h>

static bool by_debug(struct dp_module *m, dp_addr addr, const char **file, int *line)
{
	struct dp_debug *debug;
	Dwarf_Die unit;
	const char *path;
	struct dp_error *err = m->elf ? dp_module_debug(m, &debug) : dp_module_failure(m);
	const bool known = !err && dp_debug_unit_at(debug, addr.v - (uint64_t)debug->bias, &unit);
	dp_error_destroy(err);
	*file = known ? dwarf_diename(&unit) : NULL;
	if (*file && !dp_debug_line_at(debug, dp_debug_pc(debug, addr), &path, line))
		*line = 0;
	return *file;
}

static const char *by_symbol(const struct dp_symbol_index *index, uint64_t vaddr)
{
	const struct dp_symbol *s = dp_symbol_index_at(index, vaddr);
	return s && s->value == vaddr ? s->file : NULL;
}

bool dp_place_source(struct dp_module *m, dp_addr addr, const char **file, int *line)
{
	*line = 0;
	if (by_debug(m, addr, file, line))
		return true;
	*file = by_symbol(dp_module_own_index(m), dp_module_vaddr(m, addr));
	if (!*file)
		*file = by_symbol(dp_module_debug_index(m), dp_module_vaddr(m, addr));
	return *file;
}

bool dp_place_file_typed(const char *file)
{
	struct dp_spec spec = {0};
	char *text = NULL;
	if (asprintf(&text, "f@%s", file) < 0)
		return false;
	struct dp_error *err = dp_spec_parse(text, &spec);
	const bool typed = !err && spec.file && spec.function && !spec.has_line;
	free(text);
	if (err)
		return !dp_error_destroy(err) && false;
	dp_spec_fini(&spec);
	return typed;
}
