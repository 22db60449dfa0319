/* SPDX-License-Identifier: MIT */
/* .gnu_debugaltlink: a file into which dwz moved what several debug files share. The link has its name and build-id. */
#include "base/cleanup.h"
#include "base/regular.h"
#include "probes/debug/debug_internal.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <string.h>

static bool has_id(Elf *elf, const void *id, size_t n)
{
	const void *found;
	const ssize_t len = elf ? dwelf_elf_gnu_build_id(elf, &found) : -1;
	return len >= 0 && (size_t)len == n && !memcmp(found, id, n);
}

static bool try_open(struct dp_debug_state *d, const char *path, const void *id, size_t n)
{
	struct dp_debug_file f;
	if (!dp_debug_file_open(dp_open_regular(path), &f))
		return false;
	if (has_id(dwarf_getelf(f.dwarf), id, n)) {
		d->alt = f;
		return true;
	}
	dp_debug_file_close(&f);
	return false;
}

static bool by_build_id(struct dp_debug_state *d, const char *root, const uint8_t *id, size_t n)
{
	dp_auto_free char *path = NULL;
	char hex[2 * 64 + 1] = "";
	if (n < 2 || n > 64)
		return false;
	for (size_t i = 0; i < n; i++)
		snprintf(hex + 2 * i, 3, "%02x", id[i]);
	if (asprintf(&path, "%s/usr/lib/debug/.build-id/%.2s/%s.debug", root, hex, hex + 2) < 0) {
		path = NULL;
		return false;
	}
	return try_open(d, path, id, n);
}

/* A relative name is relative to the real directory of the file that has the link (d->path may be a symlink by build-id). */
static bool by_name(struct dp_debug_state *d, const char *root, const char *name, const uint8_t *id, size_t n)
{
	dp_auto_free char *path = NULL, *real = *name == '/' ? NULL : realpath(d->path, NULL);
	const char *slash = real ? strrchr(real, '/') : NULL;
	int len;
	if (*name == '/')
		len = asprintf(&path, "%s%s", root, name);
	else
		len = slash ? asprintf(&path, "%.*s/%s", (int)(slash - real), real, name) : -1;
	if (len < 0) {
		path = NULL;
		return false;
	}
	return try_open(d, path, id, n);
}

bool dp_debug_alt_open(struct dp_module *m, struct dp_debug_state *d, const char **name)
{
	const void *id;
	if (d->dwfl)
		return true; /* libdw has opened it already */
	const ssize_t n = dwelf_dwarf_gnu_debugaltlink(d->main.dwarf, name, &id);
	if (n <= 0)
		return true;
	const char *const roots[] = {m->root, ""};
	for (size_t i = *m->root ? 0 : 1; i < 2; i++)
		if (by_build_id(d, roots[i], id, (size_t)n) || by_name(d, roots[i], *name, id, (size_t)n)) {
			dwarf_setalt(d->main.dwarf, d->alt.dwarf);
			return true;
		}
	return false;
}
