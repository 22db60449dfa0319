/* SPDX-License-Identifier: MIT */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/regular.h"
#include "probes/debug/debug_internal.h"
#include "probes/image/debug_file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static struct dp_debug_state *debug_state_destroy(struct dp_debug_state *d)
{
	if (!d)
		return NULL;
	dp_debug_scopes_destroy(d->scopes);
	if (d->dwfl)
		d->main.dwarf = NULL;
	dp_debug_file_close(&d->main);
	dp_debug_file_close(&d->alt);
	if (d->dwfl)
		dwfl_end(d->dwfl);
	free(d->path);
	free(d->missing);
	free(d->range);
	free(d);
	return NULL;
}

/*
 * Opens the mapped file again by path, because libdw looks for .dwo files beside it. If the path leads to another file by now,
 * the bytes in memory are used.
 */
static bool open_own(struct dp_module *m, struct dp_debug_state *d)
{
	dp_auto_free char *path = NULL;
	struct stat st;
	if (asprintf(&path, "%s%s", m->path[0] == '/' ? m->root : "", m->path) < 0) {
		path = NULL;
		return false;
	}
	int fd = dp_open_regular(path);
	const bool same = fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_ino == m->inode;
	if (!same && fd >= 0)
		close(fd);
	if (!(same && dp_debug_file_open(fd, &d->main)) && !dp_debug_memory_open(m->elf, &d->main))
		return false;
	d->path = strdup(m->path);
	return true;
}

static bool open_separate(struct dp_module *m, struct dp_debug_state *d)
{
	dp_auto_free char *path = NULL;
	struct dp_elf *elf = dp_debug_file_find(m, &path);
	if (!elf)
		return false;
	d->open.bias += (int64_t)dp_debug_file_moved(m->elf, elf);
	const int fd = dp_open_regular(path);
	const bool opened = dp_debug_file_open_kept(fd, &d->main);
	dp_elf_destroy(elf);
	d->path = opened ? dp_take(path, NULL) : NULL;
	return opened;
}

static struct dp_error *none(struct dp_module *m)
{
	const char *id = dp_module_build_id(m), *link, *urls = getenv("DEBUGINFOD_URLS");
	uint32_t crc;
	struct dp_buf text;
	dp_buf_init(&text);
	dp_buf_printf(&text, "no debug information for '%s'", m->path);
	if (m->started)
		dp_buf_printf(&text, ", started as %s,", m->started);
	dp_buf_printf(&text, *id ? " (build-id %s): none in the file itself" : "%s: none in the file itself", id);
	if (strlen(id) > 2)
		dp_buf_printf(&text, ", no /usr/lib/debug/.build-id/%.2s/%s.debug", id, id + 2);
	if (dp_debug_file_link(m->elf, &link, &crc))
		dp_buf_printf(&text, ", no matching '%s' beside it, in .debug or in /usr/lib/debug", link);
	dp_buf_printf(&text, urls && *urls ? ", and debuginfod has none" : ", and DEBUGINFOD_URLS is not set");
	dp_buf_printf(&text, "; install its debug symbols (Debian: the -dbgsym or -dbg package), or build it with -g");
	struct dp_error *err = text.failed ? dp_error_nomem() : dp_error(DP_TAG_NO_DEBUG_INFO, "%s", dp_buf_str(&text));
	dp_buf_fini(&text);
	return err;
}

static struct dp_error *find(struct dp_module *m, struct dp_debug_state *d)
{
	const char *alt;
	if (!open_own(m, d) && !open_separate(m, d) && !dp_debug_fetch(m, d))
		return none(m);
	if (!d->path)
		return dp_error_nomem();
	if (!dp_debug_alt_open(m, d, &alt))
		return dp_error(DP_TAG_NO_DEBUG_INFO,
		                "the debug information of '%s' (in %s) needs the dwz file '%s', which is missing or does not "
		                "match; install it: it belongs to the same package",
		                m->path, d->path, alt);
	d->open.dwarf = d->main.dwarf;
	d->open.path = d->path;
	return NULL;
}

/* For all modules of the file. */
static struct dp_error *load(struct dp_module *m)
{
	struct dp_parsed *p = m->parsed;
	if (!p->debug_info && !m->no_debug) {
		struct dp_debug_state *d = calloc(1, sizeof(*d));
		if (!d)
			return dp_error_nomem();
		d->main.fd = d->alt.fd = -1;
		d->open.state = d;
		m->no_debug = find(m, d);
		p->debug_destroy = debug_state_destroy;
		p->debug_info = m->no_debug ? debug_state_destroy(d) : d;
	}
	return p->debug_info ? NULL : dp_error(m->no_debug->tag, "%s", m->no_debug->message);
}

struct dp_error *dp_module_debug(struct dp_module *m, struct dp_debug **ret)
{
	if (!m->elf)
		return dp_module_failure(m);
	if (!m->debug) {
		DP_TRY(load(m));
		if (!(m->debug = malloc(sizeof(*m->debug))))
			return dp_error_nomem();
		*m->debug = m->parsed->debug_info->open;
		m->debug->bias += m->bias;
	}
	*ret = m->debug;
	return NULL;
}

bool dp_module_debug_opened(const struct dp_module *m)
{
	return m->parsed->debug_info;
}
