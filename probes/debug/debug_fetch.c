/* SPDX-License-Identifier: MIT */
/* Fetches debug information from debuginfod through libdw, which loads the client on first use. Only if the user has set
 * servers. */
#include "probes/debug/debug_internal.h"

#include <stdlib.h>
#include <string.h>

static int find_debuginfo(Dwfl_Module *mod, void **data, const char *name, Dwarf_Addr base, const char *file, const char *link,
                          GElf_Word crc, char **ret)
{
	return dwfl_standard_find_debuginfo(mod, data, name, base, file, link, crc, ret);
}

static const Dwfl_Callbacks callbacks = {
        .find_elf = dwfl_build_id_find_elf,
        .find_debuginfo = find_debuginfo,
        .section_address = dwfl_offline_section_address,
};

/* libdw checks the build-id of the downloaded file. The addresses are the file's own, so libdw's bias does not matter. */
static bool report(struct dp_module *m, struct dp_debug_state *d, const char *path)
{
	Dwarf_Addr bias;
	Dwfl_Module *mod = dwfl_report_offline(d->dwfl, m->name, path, -1);
	dwfl_report_end(d->dwfl, NULL, NULL);
	d->main.dwarf = mod ? dwfl_module_getdwarf(mod, &bias) : NULL;
	d->path = d->main.dwarf ? strdup("debuginfod") : NULL;
	return d->main.dwarf;
}

bool dp_debug_fetch(struct dp_module *m, struct dp_debug_state *d)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	char *path = NULL;
	if (!urls || !*urls || !*dp_module_build_id(m) || m->path[0] != '/' || asprintf(&path, "%s%s", m->root, m->path) < 0)
		return false;
	d->dwfl = dwfl_begin(&callbacks);
	const bool found = d->dwfl && report(m, d, path);
	free(path);
	if (!found && d->dwfl) {
		dwfl_end(d->dwfl);
		d->dwfl = NULL;
		d->main.dwarf = NULL;
	}
	return found;
}
